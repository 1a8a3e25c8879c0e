"""The progress of a long command, on standard error so that standard output stays clean."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

QUIET_EVERY_S = 5.0
# Each drawing costs about a millisecond, beside worker processes or a search in this one.
DRAWN_PER_S = 4.0


class Progress:
    """A callable that takes the newest line: shown in place on a terminal, elsewhere one every `QUIET_EVERY_S`."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._began = self._shown = clock()
        self._line = "starting"
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
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def __call__(self, line: str) -> None:
        """Show a line, or keep quiet when one was shown a moment ago."""
        self._line, now = line, self._clock()
        if self._live is None and now - self._shown >= QUIET_EVERY_S:
            self._shown = now
            self._console.print(self._text(now), markup=False, highlight=False, soft_wrap=True)

    def _text(self, now: float | None = None) -> str:
        return f"{(self._clock() if now is None else now) - self._began:.0f} s: {self._line}"
