"""Standard output and standard error as a command uses them: their readers do not affect its exit code.

The progress of a long command goes to standard error, so that standard output stays clean.
"""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console


QUIET_EVERY_S = 5.0
SILENT_MAX_S = 20.0
LOOK_EVERY_S = 1.0
# Each drawing costs about a millisecond, beside worker processes or a search in this one.
DRAWN_PER_S = 4.0


class UnreadOutput(io.FileIO):
    """An output whose reader may go away; text written after that is dropped."""

    def write(self, data: Any) -> int:
        """Write the text, or drop it when the reader is gone."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def say(sentence: str) -> None:
    """Print a sentence of the kit on standard error."""
    print(f"marker-sim: {sentence}", file=sys.stderr, flush=True)


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


class Progress:
    """A callable that shows the newest line: in place on a terminal, elsewhere one line every `QUIET_EVERY_S`.

    Without a terminal the last line is repeated, with the elapsed time, after `SILENT_MAX_S` without a new one.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        self._console = console or Console(stderr=True)
        self._clock = clock
        self._began = self._shown = clock()
        self._line = "starting"
        self._over = threading.Event()
        self._turn = threading.Lock()
        live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = (
            Live(
                console=self._console,
                get_renderable=lambda: Text(self._text()),
                refresh_per_second=DRAWN_PER_S,
                transient=True,
            )
            if live
            else None
        )

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        else:
            threading.Thread(target=self._keep_saying, daemon=True, name="progress").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._live is not None:
            self._live.stop()

    def __call__(self, line: str) -> None:
        """Show a line, unless another one was shown just before."""
        self._line = line
        self._say_after(QUIET_EVERY_S)

    def _keep_saying(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self._say_after(SILENT_MAX_S)

    def _say_after(self, silence_s: float) -> None:
        with self._turn:
            now = self._clock()
            if self._live is None and now - self._shown >= silence_s and not self._over.is_set():
                self._shown = now
                self._console.print(self._text(now), markup=False, highlight=False, soft_wrap=True)

    def _text(self, now: float | None = None) -> str:
        return f"{(self._clock() if now is None else now) - self._began:.0f} s: {self._line}"
