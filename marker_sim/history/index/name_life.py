"""The life of a name in storage, as far as the history shows it: when it was stored, when removed, and by which call.

Judges derive their statements about missing markers from this. Where storage is only read at intervals, effects, if the
run has any, show more than the reads: in a format that only its own reader can read, a file that bears the
name, or has it in its content, is taken to hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from marker_sim.history import Event
from marker_sim.history.index.calls import Directory, RecordedCall
from marker_sim.history.index.presence import present

_END = r"[\s\"'\\,;=\x00-\x1f]"


class NameLife(NamedTuple):
    """The life of one name. spans: [from, to, from, to, ...] as in presence.py; witnessed: from effects, complete."""

    spans: tuple[int, ...]
    witnessed: bool

    def stored(self, moment: int) -> bool:
        """Whether it was stored at an event."""
        return present(list(self.spans), moment) is not None

    def since(self, moment: int) -> int | None:
        """The event since which it has been stored at an event, None when it is not stored then."""
        return max(at for at in self.spans[::2] if at <= moment) if self.stored(moment) else None

    def came(self, after: int) -> int | None:
        """The next event at which it was stored."""
        return next((at for at in self.spans[::2] if at > after), None)

    def gone(self, low: int, high: int) -> int | None:
        """The last event that removed it, between an event and another one at which it is not stored."""
        if self.stored(high):
            return None
        return max((at for at in self.spans[1::2] if low < at <= high), default=None)

    def around(self, moment: int) -> tuple[str, tuple[int, ...]]:
        """For a name not stored at an event: the end of a sentence about when it was, and the events that show it."""
        came, gone = self.came(moment), self.gone(-1, moment)
        if gone is not None:
            again = f", and stored again at event {came}" if came is not None else ""
            return f"; it was gone from event {gone} on{again}", (gone,)
        if came is not None:
            return f"; it was stored at event {came}", (came,)
        return (", nor at any other time", ()) if self.witnessed else (", and no reading of storage shows it", ())


def life_from_effects(effects: Iterable[Event], directory: str, name: str) -> NameLife:
    """The life of a name in a marker directory, from the effects on its files, whatever their format is."""
    path = f"{directory}/{name}"
    text = re.escape(name.encode("utf-8", "surrogateescape"))
    held_in = re.compile(b"(?:^|%b)%b(?:$|%b)" % (_END.encode(), text, _END.encode()))
    files: set[str] = set()
    spans: list[int] = []
    for event in effects:
        assert event.path is not None
        content = event.value if isinstance(event.value, bytes) else None
        held = content is not None and (event.path == path or held_in.search(content) is not None)
        if held != (event.path in files):
            files ^= {event.path}
            if bool(files) != bool(len(spans) % 2):
                spans.append(event.index)
    return NameLife(tuple(spans), witnessed=True)


def taken_by(
    remover: Event, directories: Iterable[Directory], own: str, asked: Callable[[RecordedCall], str]
) -> tuple[str, tuple[int, ...]]:
    """The deletion of another directory in which an effect took a name: the end of a sentence, and its event.

    asked: the process that executes a call; removals by other processes do not belong to that call.
    """
    for directory in directories:
        for call in directory.deletes if directory.path != own and remover.kind == "effect" else ():
            if call.invoke < remover.index < call.done and asked(call) == remover.process:
                what = f"; {remover.process} removed it during the deletion of {directory.path}, event {call.invoke}"
                return what, (call.invoke,)
    return "", ()
