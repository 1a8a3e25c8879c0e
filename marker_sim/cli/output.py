"""Standard output and error as commands use them: a reader that goes away does not change the exit code."""

from __future__ import annotations

import io
import sys
from typing import Any, TextIO


class UnreadOutput(io.FileIO):
    """An output whose reader may go away; text written after that is dropped."""

    def write(self, data: Any) -> int:
        """Write the text, or drop it when the reader is gone."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def settle_outputs() -> None:
    """Replace both outputs: a closed pipe ends nothing, and what the encoding cannot print is escaped."""
    sys.stdout, sys.stderr = (_settled(stream) for stream in (sys.stdout, sys.stderr))


def _settled(stream: TextIO) -> TextIO:
    """The output in its tolerant form; one that a caller replaced or closed stays as it is."""
    if stream not in (sys.__stdout__, sys.__stderr__) or not isinstance(stream, io.TextIOWrapper):
        return stream
    stream.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(UnreadOutput(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
