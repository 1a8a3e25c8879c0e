"""Standard output and standard error as a command uses them: whoever reads them has no say in its exit code."""

from __future__ import annotations

import io
import sys
from typing import Any, TextIO


class UnreadOutput(io.FileIO):
    """An output whose reader may be gone: what is written from then on is dropped."""

    def write(self, data: Any) -> int:
        """Write, or drop it."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def settle_outputs() -> None:
    """Let a closed pipe end nothing, and escape what an encoding cannot print."""
    sys.stdout, sys.stderr = (_settled(stream) for stream in (sys.stdout, sys.stderr))


def _settled(stream: TextIO) -> TextIO:
    """The same output; one that a caller has put in its place, or closed, stays as it is."""
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
