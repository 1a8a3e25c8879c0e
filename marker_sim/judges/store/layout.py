"""Judges of the files of a marker directory: G8 bounded-files, G9 type-recorded, G22 hdfs-falls-back."""

from __future__ import annotations

from marker_sim.history import NO_SERVER
from marker_sim.history.index.calls import DAMAGE, SEVERAL_LIVES, Directory
from marker_sim.history.index.event_reader import END_OF_RUN
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.history.index.presence import NEVER, DirectoryPresence
from marker_sim.judges.findings import Inquiry, judge_of, next_answer
from marker_sim.names import TYPE_BATCHED, TYPE_FILE, decode_names, is_marker_name

_FALLS_BACK = frozenset({"hdfs", "s3-unconditional"})


@judge_of("G8")
def bounded_files(case: Inquiry) -> None:
    """G8: in each directory that was named the number of files of each kind at one time is bounded.

    Timeline: at most num_threads MARKERS<n>, no type file but MARKERS.type, no direct marker file. Direct: marker files
    are empty and there is no MARKERS file; G1 and G4 judge whether each marker has one. Temporary and side files do not
    count.
    """
    view = case.view
    case.applicable = view.header.layout == "hudi"
    for path in view.named if case.applicable else ():
        home = view.rest.home(path)
        if not (home.batch or home.direct or home.types):
            continue
        case.judged += 1
        direct = view.mode_of(path) == "direct"
        found = _direct_files(home) if direct else _batched_files(home, view.header.num_threads)
        for cause, what, at in found:
            answer = next_answer(view, path, at, _name(view, path, at))
            case.breach(f"from event {at} on {path} {what}", (at,), path, cause, answer)


def _name(view: HistoryIndex, directory: str, at: int) -> str:
    """The marker that an event's file holds by its name, "" for any other file."""
    name = (view.events[at].path or "").removeprefix(f"{directory}/")
    return name if is_marker_name(name) else ""


def _batched_files(home: DirectoryPresence, num_threads: int) -> list[tuple[str, str, int]]:
    count, index = home.batch_high
    many = f"holds {count} marker files, expected at most num_threads={num_threads}"
    found = [("too-many-files", many, index)] if count > num_threads else []
    others = [(name, at) for name, at in home.types.items() if name != TYPE_FILE]
    found += [("second-type-file", f"holds a second type file, {name!r}", at) for name, at in others]
    direct = list(home.direct.items())[:1]
    found += [("direct-marker-file", f"holds the direct marker file {name!r}", at) for name, at in direct]
    return found


def _direct_files(home: DirectoryPresence) -> list[tuple[str, str, int]]:
    filled = [(f"holds the direct marker file {name!r}, which is not empty", at) for at, name in home.filled[:1]]
    found = [("not-empty", what, at) for what, at in filled]
    batched = sorted((at, name) for name, at in {**home.batch, **home.types}.items())
    found += [("batched-file", f"holds {name!r} although its markers are direct", at) for at, name in batched[:1]]
    return found


@judge_of("G9")
def type_recorded(case: Inquiry) -> None:
    """G9: from the first batched marker file until a deletion is invoked, MARKERS.type is there with its text, in each
    directory that was named.

    Files that a deletion leaves while it may still have an effect are not judged; a marker file written later is.
    After damage by the kit, marker files are judged that a server writes which began after it.
    G11 judges whether listings are complete with a damaged type file.
    """
    view = case.view
    case.applicable = view.header.layout == "hudi" and view.batches
    for path in view.named if case.applicable else ():
        home = view.rest.home(path)
        if not home.batch or view.mode_of(path) == "direct":
            continue
        case.judged += 1
        directory = view.directories.get(path) or Directory(path)
        bad = next((at for at in home.untyped if not _excused(view, directory, home, at)), None)
        if bad is not None:
            cause = _untyped_by(case, directory, bad)
            message = f"{path} holds a marker file at event {bad}, and no {TYPE_FILE} with its text"
            if not view.reads:
                changes = (e for e in view.events[: bad + 1] if e.kind == "effect" and e.path == f"{path}/{TYPE_FILE}")
                last = max((event.index for event in changes), default=None)
                message += ", nor was there one before" if last is None else f"; its last change was event {last}"
            case.breach(message, (bad,), path, cause, next_answer(view, path, bad))


def _untyped_by(case: Inquiry, directory: Directory, at: int) -> str:
    if case.causes.put_failed(directory.path, 0, at):
        return "put-failed"
    if case.causes.deleted_before(directory, at):
        return "after-deletion"
    return "after-kill" if case.view.killed(-1, at) is not None else "never-typed"


def _excused(view: HistoryIndex, directory: Directory, home: DirectoryPresence, at: int) -> bool:
    """Whether a deletion, or unrepaired damage by the kit, may be why the type file is missing."""
    type_file = f"{directory.path}/{TYPE_FILE}"
    typed = max((since for since in home.typed_at if since < at), default=-1)
    damaged = [f.begin for f in view.faults if f.kind == DAMAGE and f.path == type_file and typed <= f.begin < at]
    if damaged and not _written_by_a_successor(view, at, max(damaged)):
        return view.excuse("kit-damage")
    before = [deletion for deletion in directory.deletions if deletion.invoke < at]
    if not before:
        return False
    over = max(deletion.settled for deletion in before)
    if at < over:
        return view.excuse("deletion-open")
    if not view.reads:
        return _open_at_deletion(view, directory, type_file, at) and view.excuse("create-open")
    begun = home.begun[home.seen.index(at)]
    written = any(call.invoke >= over and call.done <= begun for call in directory.answers)
    return not written and view.excuse("left-by-deletion")


def _open_at_deletion(view: HistoryIndex, directory: Directory, type_file: str, at: int) -> bool:
    """Whether a stored marker's create was open when another process deleted the type file.

    Its server may have seen the type file before. It must be back before a create of a name that is new in the file is
    answered, unless the server was killed before that, or stays paused.
    """
    event = view.events[at]
    changes = [e for e in view.events if e.kind == "effect" and e.path == type_file]
    taken = next((e for e in reversed(changes) if e.index < at), None)
    lives = [life for life in view.lives.values() if life.process == event.process and life.start < at]
    if taken is None or not lives or taken.operation != "delete" or taken.process == event.process:
        return False
    life, spans = lives[-1], view.rest.home(directory.path).spans
    written = decode_names(event.value) if isinstance(event.value, bytes) else ()
    asked = [call for call in directory.creates if call.name in written and call.life in (life.start, SEVERAL_LIVES)]
    back = [e.index for e in changes if e.index > at and e.value == TYPE_BATCHED]
    gone = [life.end] if life.end != NEVER and view.events[life.end].value != END_OF_RUN else []
    paused = [begin for begin, end in life.pauses if end >= view.phase("end")]
    # What was in the file before may be answered at any time; such an answer says nothing about this write of it.
    fresh = (call.done for call in asked if call.outcome == "ok" and call.done > at and at in spans.get(call.name, ()))
    waits = any(call.invoke < taken.index and view.over(call) > at for call in asked)
    return waits and min(back + gone + paused, default=NEVER) < min(fresh, default=NEVER)


def _written_by_a_successor(view: HistoryIndex, at: int, damaged: int) -> bool:
    """Whether an event is the effect of a server begun after the damage, which therefore read it."""
    process = view.events[at].process
    return any(life.process == process and life.start > damaged for life in view.lives.values())


@judge_of("G22")
def hdfs_falls_back(case: Inquiry) -> None:
    """G22: applicable where a choice is recorded, or timeline-server markers were requested on a storage without them.

    The recorded choice of the run, or of a write, is what it asked for. On HDFS, on an object store without conditions
    and without a timeline server it is direct, and gives a reason if others were asked for; on such a storage no
    MARKERS file is ever stored. The choice is the answer.
    """
    view, header = case.view, case.view.header
    lacking = header.storage in _FALLS_BACK
    falls_back = lacking and "timeline" in {header.mode, *(event.path for event in view.modes)}
    for event in view.modes:
        asked = event.path or header.mode  # A write records what it asked for, unless that is the mode of the run.
        direct = lacking or asked == NO_SERVER
        if event.value != ("direct" if direct else asked):
            message = f"{event.value!r} markers were chosen on {header.storage}, {asked!r} ones were asked for"
            cause = "no-fallback" if direct else "not-as-asked"
            case.breach(message, (event.index,), cause=cause)
        elif direct and asked != "direct" and not event.error:
            message = "direct markers were chosen instead of timeline-server markers, and no reason was given"
            case.breach(message, (event.index,), cause="no-reason")
    for path, home in sorted(view.rest.homes.items()) if falls_back else ():
        for name, at in sorted({**home.batch, **home.types}.items())[:1]:
            message = f"{path} holds {name!r} on {header.storage}"
            case.breach(message, (at,), path, "no-fallback", next_answer(view, path, at))
    case.applicable, case.judged = falls_back or bool(view.modes), len(view.modes)
    if falls_back and not view.modes and not case.breaches:
        case.undecided = "the run recorded no choice of mode"
