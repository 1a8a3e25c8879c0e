"""The progress line of a long command, on standard error so that standard output stays clean."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.status import Status

QUIET_EVERY_S = 5.0


class Progress:
    """A callable that takes the newest line: a spinner on a terminal, elsewhere one line every `QUIET_EVERY_S`."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._began = self._shown = clock()
        self._status: Status | None = Status("starting", console=self._console) if self._console.is_terminal else None

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, line: str) -> None:
        """Show a line, or keep quiet when one was shown a moment ago."""
        now = self._clock()
        text = f"{now - self._began:.0f} s: {line}"
        if self._status is not None:
            self._status.update(escape(text))
        elif now - self._shown >= QUIET_EVERY_S:
            self._shown = now
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)
