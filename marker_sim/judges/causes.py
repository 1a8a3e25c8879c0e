"""The cause of a breach, as far as one history shows it: one word for each, so that defects are counted separately.

The cause of a missing marker, or of a name that was not requested:

    glued                 its text is part of a longer stored name that was not requested
    empty-name            it is "", and a line without a name is no marker
    split-at-line-break   it has a line break, and its pieces are names; split-at-carriage-return likewise
    no-text               it has bytes that are no UTF-8, or is shown with U+FFFD for them
    garbled               it is shown with other characters, as in another encoding
    file-cut              the file that held it is empty or ends too early, and a kill or failing storage is why
    mixed                 it is the end of a requested name, and two writes of one file may have met
    shortened             it is the beginning or the end of a requested name, and no file was cut or written twice
    another-server        two servers were live
    put-failed            it was never stored, and storage failed in its directory during its request
    after-deletion        the directory was deleted before, in the same server life, and had kept markers until then
    stored-late           it was stored after the answer
    lost-at-kill          it was never read as stored, and a server was killed between the answer and the first read
    file-gone             a file that held it is gone, with no deletion
    rewritten-without     a file that held it was written again as a whole, without it
    never-stored          none of these, and it was never stored
    unasked               the name was not requested, and is not like any that was

The cause of "exists" without a stored marker: exists-while-open while an earlier create of the name has no answer, and
exists-after-failed-flush when storage failed since that began. Other causes are named beside the judges that use them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from itertools import pairwise
from typing import Any, TypeVar

from marker_sim.history.index.calls import DEADLY, NO_LIFE, Directory, RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, directory_of, present
from marker_sim.names import checksum_file, marker_file_index, most_like

HARMLESS = frozenset({"slow-storage", "placeholder", "damage", "stray-files", "storage-wire-latency"})
_BREAKS = {"\n": "split-at-line-break", "\r": "split-at-carriage-return"}
_LINES = re.compile(r"[\n\r]")
_NO_TEXT = re.compile("[\udc80-\udcff]")  # The result of surrogateescape for bytes that are no UTF-8.
_SURROGATES = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")  # Each is one letter for Java, U+FFFD or "?".
_LAST = 200
BEFORE_ITS_END = ("overwrite-begin", "overwrite-piece")
_Method = TypeVar("_Method", bound=Callable[..., Any])
_Version = tuple[int, bytes | None]
_Versions = dict[str, list[_Version]]


def kept(method: _Method) -> _Method:
    """A method of `Causes` whose results it keeps; `functools.cache` would keep the object, and so the history."""

    @wraps(method)
    def call(self: Causes, *asked: Any) -> Any:
        key = method, *asked
        if key not in self.results:
            self.results[key] = method(self, *asked)
        return self.results[key]

    return call  # type: ignore[return-value]


class Causes:
    """The causes of breaches in one history. Results are cached, for one run may have many breaches.

    Nothing is read before the first breach.
    """

    def __init__(self, view: HistoryIndex) -> None:
        self._view = view
        self.results: dict[tuple[object, ...], Any] = {}
        self._losses: dict[tuple[int, int], str] = {}
        self._listed: dict[int, frozenset[str]] = {}

    def of_loss(self, directory: Directory, call: RecordedCall, at: int) -> str:
        """The cause for which an answered marker is missing from storage at an event."""
        known = self._losses.get((call.invoke, at))
        if known is None:
            known = self._losses[call.invoke, at] = self._of_loss(directory, call, at)
        return known

    def _of_loss(self, directory: Directory, call: RecordedCall, at: int) -> str:
        view, path = self._view, directory.path
        home, life = view.rest.home(path), view.life_of(path, call.name)
        stored = bool(life.spans) and life.spans[0] <= at
        before = max((index for index in life.spans if index <= at), default=home.seen_at(call.done) or at)
        word = self._stored_otherwise(directory, call.name, at) or self._stored_otherwise(directory, call.name, before)
        if word:
            return word
        if view.overlapping_servers(call.invoke, at):
            return "another-server"
        if not stored and call.value == "exists" and (word := self._of_exists(directory, call, at)):
            return word
        if not stored and self._own_put_failed(directory, call):
            return "put-failed"
        if not stored and life.came(at) is not None:
            return "stored-late"
        if self.deleted_before(directory, at) and (
            stored or view.header.witness == "reads" or _kept_any(view, directory)
        ):
            return "after-deletion"
        if stored:
            gone = life.gone(-1, at) if view.reads and life.witnessed else None  # Only for a format of its own.
            lost = self._file_gone(path, call.name, at) if gone is None else view.events[gone].value is None
            return "file-gone" if lost else "rewritten-without"
        unseen = view.reads and view.killed(call.done, min(at, home.seen_at(call.done) or at) + 1) is not None
        return "lost-at-kill" if unseen else "never-stored"

    def _of_exists(self, directory: Directory, call: RecordedCall, at: int) -> str:
        """The cause for which a marker never stored was answered "exists"; "" when no other create explains that."""
        made, asked = self._earlier(directory, call)
        if made or not asked:
            return self.of_loss(directory, made[-1], at) if made else ""
        failed = self.put_failed(directory.path, min(c.invoke for c in asked), call.done)
        return "exists-after-failed-flush" if failed else "exists-while-open"

    def _earlier(self, directory: Directory, call: RecordedCall) -> tuple[list[RecordedCall], list[RecordedCall]]:
        """The other creates of a name that may explain an answer "exists": those answered "created" before it, and
        those without an answer, unless a deletion met them before the call.
        """
        before = [c for c in directory.creates if c.name == call.name and c.invoke < call.done and c != call]
        made = [c for c in before if c.value == "created" and c.done < call.done]
        waiting = [c for c in before if c.done > call.done or c.outcome == "info"]
        return made, [c for c in waiting if not self.deleted_between(directory, c.invoke, call.invoke)]

    def meant_by_exists(self, directory: Directory, call: RecordedCall) -> str:
        """The earlier create that explains an answer "exists" for a name never stored: the end of a sentence."""
        made, asked = self._earlier(directory, call)
        meant = made[-1] if made else asked[0] if asked else None
        if meant is None:
            like = (c for c in directory.creates if c.invoke < call.done and call.name in c.name != call.name)
            return next((f"; event {c.invoke} had requested {c.name!r}, which contains it" for c in like), "")
        ended = 'was answered "created"' if made else f"ended {meant.outcome}"
        what = f"{ended} at event {meant.done}" if meant.done < call.done else "had no answer yet"
        return f"; the create of event {meant.invoke} {what}"

    def of_stranger(self, directory: Directory, name: str, kind: str = "list") -> str:
        """The cause of a name that was not requested; kind: of the listing that shows it."""
        asked = self._asked_as(directory, kind)
        if name in self._forms_of(directory, kind):
            return "no-text" if "\ufffd" in name else "garbled"
        for mark, word in _BREAKS.items():
            if any(mark in each and name in (*_LINES.split(each), *each.split(mark)) for each in asked):
                return word
        if any(each and each != name and each in name for each in asked):
            return "glued"
        if any(each.endswith(name) for each in asked):
            return "mixed" if self._view.reads or self._view.in_place else "shortened"
        if any(each.startswith(name) for each in asked):
            return "file-cut" if self.cut(directory.path, self._view.end, ever=True) else "shortened"
        return "unasked"

    @kept
    def _meant(self, directory: Directory, stranger: str, since: int) -> RecordedCall | None:
        """The create, of the `_LAST` before an event, whose name is most like a stored one that was not requested."""
        before = {c.name: c for c in [c for c in directory.creates if c.invoke < since][-_LAST:]}
        return before.get(most_like(stranger, before) or "")

    def asked_instead(self, directory: Directory, stranger: str, since: int) -> tuple[str, tuple[int, ...]]:
        """The request that an unrequested stored name may stand for: the end of a sentence, and evidence.

        An accepted hostile request whose name it is, or contains it, else the create under way of a name most like it.
        """
        for call in directory.hostile:
            if call.outcome == "ok" and call.invoke < since and stranger in call.asked:
                whole = f"a hostile request of it was accepted at event {call.done}"
                part = f"it is a part of {call.identity!r}, which was accepted at event {call.done}"
                return f"; {whole if stranger == call.asked else part}", call[:2]
        meant = self._meant(directory, stranger, since)
        return f"; event {meant.invoke} had requested {meant.name!r}" if meant is not None else "", ()

    def instead(self, directory: Directory, call: RecordedCall, at: int) -> str:
        """The name stored at an event in place of a missing one: the end of a sentence."""
        name, home = call.name, self._view.rest.home(directory.path)
        low = min((c.invoke for c in directory.creates if c.name == name), default=call.invoke)
        high, lost = home.seen_at(call.done) or at, self._view.life_of(directory.path, name).gone(call.done, at)
        no_marker = self._no_marker(directory, call, at)
        if no_marker or not name:
            return no_marker
        for other, span in self._strangers_in(directory):
            if (low < span[0] <= high or span[0] == lost) and present(span, at) is not None:
                meant = self._meant(directory, other, span[0])
                if name in other if meant is None or meant.name in other else meant.name == name:
                    since = max(start for start in span[::2] if start <= at)
                    return f"; {other!r} is, from event {since} on, which was never requested"
        return ""

    def _no_marker(self, directory: Directory, call: RecordedCall, at: int) -> str:
        """The malformed line written in place of a name: the end of a sentence.

        In a file as it is at an event, else in one as it was written since the name was asked for.
        """
        name, found = call.name.encode("utf-8", "surrogateescape"), ""
        line = "it in a last line that has no end, which is no marker" if name else "an empty line, which is no marker"
        begun = since = -1
        for when, until, last, empty in self._odd_lines(directory.path):
            if when > at or not (name in last if name else empty):
                continue
            begun = begun if when == since else when  # The first of several consecutive versions that have it.
            since = until
            if until > at and (name or begun > call.invoke):
                return f"; event {begun} leaves {line}"
            if begun > call.invoke and until <= at:
                was = f"from event {begun} until event {until} {'it was' if name else 'there was'}"
                found = f"; {was} {line.removeprefix('it ')}"
        return found

    @kept
    def _odd_lines(self, path: str) -> list[tuple[int, int, bytes, bool]]:
        """The versions of marker files with an unterminated last line or an empty line: from when until when each was,
        that last line, and whether there is an empty one.
        """
        found = []
        for versions in self._versions(path).values():
            for (when, now), (until, _) in pairwise((*versions, (NEVER, None))):
                last = (now or b"")[(now or b"").rfind(b"\n") + 1 :]
                empty = b"\n\n" in (now or b"") or (now or b"").startswith(b"\n")
                if last or empty:
                    found.append((when, until, last, empty))
        return found

    def shown_otherwise(self, directory: Directory, listing: RecordedCall, name: str) -> str:
        """The form in which a listing shows a name that it should contain: glued, garbled or split, "" for none."""
        if word := _of_odd(name):
            return word
        strangers = self._listed.get(listing.invoke)
        if strangers is None:
            listed = frozenset(listing.value if isinstance(listing.value, tuple) else ())
            strangers = self._listed[listing.invoke] = listed - self._asked_as(directory, listing.operation)
        if any(name in other for other in strangers):
            return "glued"
        return "garbled" if strangers.intersection(_in_other_encodings(name)) else ""

    def put_failed(self, path: str | None, low: int, high: int) -> int:
        """The first failure of storage between two events, in a directory (None: in any) or everywhere; 0 for none."""
        found = (
            fault.begin
            for fault in self._view.faults
            if (fault.storage and fault.kind not in HARMLESS)
            and (fault.begin <= high and low <= fault.end)
            and not (fault.path or "").endswith("/")  # A listing failed.
            and (path is None or not fault.path or f"{fault.path}/".startswith(f"{path}/"))
        )
        return min(found, default=0)

    def _own_put_failed(self, directory: Directory, call: RecordedCall) -> bool:
        """Whether storage failed during a name's creates; faults of one client's storage count only for its creates."""
        view, asked = self._view, [c for c in directory.creates if c.name == call.name] or [call]
        since = min(c.invoke for c in asked)
        clients = {view.events[c.invoke].process for c in asked if c.life == NO_LIFE}
        failed = {f.process for f in view.faults if f.storage and since <= f.end and f.begin <= call.done}
        return self.put_failed(directory.path, since, call.done) > 0 and not (clients and clients.isdisjoint(failed))

    def cut(self, path: str, at: int, name: str = "", ever: bool = False) -> bool:
        """Whether a marker file of a directory is empty, ends within a line, or lost its last lines, at an event.

        That counts only where a kill of its writer, or storage that failed it, can be the reason.
        name: only a file that held it before, if glued to others, unless it was never seen stored.
        ever: or at any event before.
        """
        text = name.encode("utf-8", "surrogateescape")
        home = self._view.rest.home(path)
        span = home.spans.get(name)
        seen = span is not None and span[0] <= at
        for (index, before), (when, now) in self._changes(path, at, ever):
            if now is None or (seen and text not in (before or b"")):
                continue
            earlier = home.began(index)
            shorter = before is not None and len(now) < len(before) and before.startswith(now)
            if (shorter or not now.endswith(b"\n")) and self._interrupted(path, earlier, when):
                return True
        return False

    def _interrupted(self, path: str, low: int, high: int) -> bool:
        """Whether a kill or a storage failure may be why a file is as it was written, or seen, at `high`."""
        view = self._view
        if view.reads:
            return view.killed(low, high) is not None or self.put_failed(path, low, high) > 0
        writer, written = view.events[high].process, view.events[high].path or ""
        until = next((when for when, _ in self._versions(path)[written] if when > high), view.end)
        parts = written, checksum_file(written)
        late = written if view.events[high].operation not in BEFORE_ITS_END else None  # Died within a first write.
        return any(
            fault.process == writer and low < fault.begin <= (until if late in (None, fault.path) else high)
            for fault in view.faults
            if fault.kind in DEADLY or (fault.path in parts and fault.storage and fault.kind not in HARMLESS)
        )

    def unreadable(self, directory: Directory, at: int) -> bool:
        """Whether a marker file of a directory is damaged at an event: cut, or mixed with another."""
        there = self._strangers_at(directory, at)
        return self.cut(directory.path, at) or any(self.of_stranger(directory, name) == "mixed" for name in there)

    def deleted_before(self, directory: Directory, at: int) -> bool:
        """Whether the server that lives, or last died, at an event had deleted the directory earlier."""
        lives = [life.start for life in self._view.lives.values() if life.start <= at]
        return self.deleted_between(directory, max(lives, default=-1), at)

    def deleted_between(self, directory: Directory, low: int, high: int) -> bool:
        """Whether a deletion was invoked, or may have had an effect, between two events."""
        return any(not d.kit and d.invoke < high and d.settled > low for d in directory.deletions)

    def glued(self, directory: Directory, name: str, at: int) -> bool:
        """Whether a name is part of a longer, unrequested name stored at an event."""
        return any(name in other for other in self._strangers_at(directory, at))

    def _stored_otherwise(self, directory: Directory, name: str, at: int) -> str:
        """The cause that the name itself shows, or what is stored in its place, "" for none."""
        if word := _of_odd(name):
            return word
        if self.glued(directory, name, at):
            return "glued"
        if self.cut(directory.path, at, name):
            return "file-cut"
        there = self._strangers_at(directory, at)
        if not set(there).isdisjoint(_in_other_encodings(name)):
            return "garbled"
        ends = [other for other in there if name.startswith(other) or name.endswith(other)]
        return "shortened" if any(2 * len(other) > len(name) for other in ends) else ""

    @kept
    def _asked_as(self, directory: Directory, kind: str) -> frozenset[str]:
        """The requested names in the form in which such a listing shows them."""
        if kind != "list":
            return frozenset(self._view.names_data(name)[1] for name in self._asked_as(directory, "list"))
        hostile = (name for call in directory.hostile for name in call.asked_names)
        return frozenset({*hostile, *(call.name for call in directory.creates)})

    @kept
    def _strangers_in(self, directory: Directory) -> list[tuple[str, list[int]]]:
        asked, spans = self._asked_as(directory, "list"), self._view.rest.home(directory.path).spans
        return [(name, span) for name, span in spans.items() if name not in asked]

    def _strangers_at(self, directory: Directory, at: int) -> list[str]:
        """The unrequested names stored at an event."""
        return [name for name, span in self._strangers_in(directory) if present(span, at) is not None]

    @kept
    def _forms_of(self, directory: Directory, kind: str) -> frozenset[str]:
        """The forms that names with non-ASCII characters take in other encodings."""
        asked = self._asked_as(directory, kind)
        return frozenset(form for name in asked if not name.isascii() for form in _in_other_encodings(name)) - asked

    def _file_gone(self, path: str, name: str, at: int) -> bool:
        line = f"{name}\n".encode("utf-8", "surrogateescape")
        changes = list(self._changes(path, at))
        direct = not any(marker_file_index(file.rpartition("/")[2]) is not None for file in self._versions(path))
        return direct or any(now is None and line in (before or b"") for (_, before), (_, now) in changes)

    def _changes(self, path: str, at: int, ever: bool = False) -> Iterator[tuple[_Version, _Version]]:
        """Each marker file's content at an event, paired with the one before it; ever: its earlier contents as well."""
        for versions in self._versions(path).values():
            number = bisect_right(versions, at, key=lambda version: version[0]) - 1
            for n in range(0 if ever else max(number, 0), number + 1):
                yield versions[n - 1] if n else (-1, None), versions[n]

    def _versions(self, path: str) -> _Versions:
        return self._by_directory.get(path, {})

    @cached_property
    def _by_directory(self) -> dict[str, _Versions]:
        """The contents of marker files by directory and path."""
        found: dict[str, _Versions] = {}
        for event in self._view.events:
            wanted = event.operation == "file" if self._view.reads else event.kind == "effect"
            if not wanted or event.path is None or marker_file_index(event.path.rpartition("/")[2]) is None:
                continue
            content = event.value if isinstance(event.value, bytes) else None
            home = directory_of(event.path) or ""
            found.setdefault(home, {}).setdefault(event.path, []).append((event.index, content))
        return found


def _kept_any(view: HistoryIndex, directory: Directory) -> bool:
    """Whether a marker answered before a deletion was ever stored, so that the deletion may be why it is missing."""
    spans = view.rest.home(directory.path).spans
    last = max((d.invoke for d in directory.deletions if not d.kit), default=-1)
    return any(call.done < last and call.name in spans for call in directory.answers)


def _of_odd(name: str) -> str:
    """The cause that the name itself shows, "" for none."""
    if not name:
        return "empty-name"
    for mark, word in _BREAKS.items():
        if mark in name:
            return word
    return "no-text" if _NO_TEXT.search(name) else ""


def _in_other_encodings(name: str) -> Iterator[str]:
    for encoding in ("latin-1", "ascii"):
        yield name.encode(encoding, "replace").decode(encoding)
    yield name.encode("utf-8", "surrogatepass").decode("latin-1")
    if not any("\ud800" <= letter < "\udc80" or "\udcff" < letter <= "\udfff" for letter in name):
        raw = name.encode("utf-8", "surrogateescape")
        yield from (_SURROGATES.sub(by, raw).decode("utf-8", "replace") for by in (rb"\g<0>", "\ufffd".encode(), b"?"))
