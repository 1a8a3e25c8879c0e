"""Plans and events as sentences, in the order in which they happen."""

from __future__ import annotations

import re
from functools import partial

from marker_sim.faults import Call, Fault, FaultKind, FaultSettings
from marker_sim.faults.sites import SITES
from marker_sim.history import NO_SERVER, History
from marker_sim.judges.violations import format_event
from marker_sim.names import legible
from marker_sim.plan import AS, OF_CROWD, EarlierLife, Op, Plan, TableShape, Task, Write

_SETTING = re.compile(r"\{(\w+)(?:\?([^|}]*)\|([^}]*))?\}")
_LONG = re.compile(r"(\S{80})\S{120,}(\S{40})")
TASKS_MAX = 12
ALL = 1_000  # Calls that nobody waits for.
_TIMES = ("first", "second", "third")
_VERBS = {"create": "creates", "delete": "deletes", "exists": "checks the existence of"}
_ACTORS = {
    "driver": "the driver",
    "server": "the server",
    "second": "the second server",
    "executor": "an executor",
    "storage": "any process",
}


def plan_sentences(plan: Plan) -> tuple[str, ...]:
    """A plan as sentences: the set-up, each actor's operations in their order, the faults by actor and step."""
    if plan.shape is not None and plan.shape.writers:
        jobs = (_job(f"writer-{number}", write) for number, write in enumerate(plan.writes, 1))
        return (_table(plan, plan.shape), *jobs, *(_fault(fault, writes=False) for fault in plan.faults))
    if plan.shape is not None:
        return (_table(plan, plan.shape), *(_write_of_hudi(plan, number) for number in range(len(plan.writes))))
    places = ", ".join((*plan.directories, *(plan.tables if plan.writes else ())))
    head = (
        f"{plan.mode.capitalize()} markers on {plan.storage}, {plan.num_threads} marker file(s), a batch every"
        f" {plan.interval_ms} ms, in {places}."
    )
    if plan.writes:
        kind = "MERGE_ON_READ" if plan.merge_on_read else "COPY_ON_WRITE"
        server = "" if plan.embedded else " The timeline server outlives the driver."
        head += f" {kind} tables, {plan.executors} executor(s).{server}{_life(plan.earlier) if plan.earlier else ''}"
    many = len(plan.directories) > 1
    operations = tuple(_operation(op, plan.directories[op.directory] if many else "") for op in plan.ops)
    order = sorted(plan.faults, key=lambda fault: (fault.target, fault.n))
    if not plan.entries:
        head += " No operation and no fault is needed: the probe at the end of every run shows the violation."
    writes = tuple(_write(write, plan.tables) for write in plan.writes)
    if any(write.faults for write in plan.writes):
        met = ((n, plan.faults[index]) for n, write in enumerate(plan.writes, 1) for index in write.faults)
        return (head, *writes, *(f"In write {number}: {_fault(fault, writes=False)}" for number, fault in met))
    return (head, *operations, *writes, *(_fault(fault, bool(plan.writes)) for fault in order))


def _life(life: EarlierLife) -> str:
    """The earlier content of tables, as sentences."""
    looks = {"millis": "", "seconds": " with instants of 14 digits", "bootstrap": " with instants of a bootstrap"}
    logs = ", the last one of log files" if life.logs and life.commits > 1 else ""
    folder = "in the folders of table version 8" if life.version8 else "archived"
    archived = f", {life.archived} commit(s) {folder}" if life.archived else ""
    left = f", and an unfinished {life.left}" if life.left else ""
    return (
        f" They have earlier content: {life.commits} completed commit(s){looks[life.instants]}{logs}{archived}{left}."
    )


def _job(writer: str, write: Write) -> str:
    groups = ", ".join(f"{task.partition}/{task.group}" for task in write.tasks)
    return f"{writer} {f'updates its rows of {groups}' if groups else 'rolls back failed writes'}."


def _table(plan: Plan, shape: TableShape) -> str:
    kind = "MERGE_ON_READ" if plan.merge_on_read else "COPY_ON_WRITE"
    peculiar = (
        ", with a metadata table" if shape.metadata else "",
        ", kept at table version 6" if shape.version6 else "",
        " until its second driver" if shape.upgrades else "",
        ", requests to the timeline server sent again" if shape.resends else "",
        "" if shape.small_files else ", new rows in files of their own",
        ", a partition begun by the second write" if shape.grows else "",
        ", one left alone from the third on" if shape.rests else "",
        ", executors as processes of their own" if shape.cluster else "",
    )
    how = (
        " First comes a write without faults; another one, and a look at the table, after each write below with a death"
        " or a failure."
    )
    if shape.writers:
        how = (
            f" Its file groups are written first. Then writers run on it ({shape.sharing} settings), one at a time:"
            " until one is paused, waits for the lock or is over, when the next goes on. Their heartbeats last 120 s. A"
            " write that heals and a look at the table follow."
        )
    if any(write.service for write in plan.writes):
        how += " What a service needs is done before it; it is begun once more after that write."
    if shape.future:
        how += f" In the end, with a reading after each: {', '.join(shape.future)}."
    return (
        f"{plan.mode.capitalize()} markers on {plan.storage}: Hudi writes a {kind} table,"
        f" partitions {shape.partitions}, {shape.index} index{''.join(peculiar)},"
        f" {plan.num_threads} batch thread(s).{how}"
    )


def _write_of_hudi(plan: Plan, number: int) -> str:
    write = plan.writes[number]
    what = "; ".join(_fault(plan.faults[fault], writes=False).rstrip(".") for fault in write.faults)
    if write.abandon and not what:
        what = "the driver is killed when all its data files are there"
    what += ", so that the next one has to roll back" if write.abandon else ""
    kind = f"{write.service.capitalize()}, step" if write.service else "Write"
    return f"{kind} {number + 1}{f' ({write.name})' if write.name else ''}: {what or 'no fault'}."


def _operation(op: Op, directory: str) -> str:
    who = _ACTORS.get(op.actor, op.actor).replace("the ", "The ")
    if op.copies > 1:
        pace = f"{op.apart_ms} ms apart" if op.apart_ms else "at once"
        who = f"{op.copies} clients ({op.actor}{OF_CROWD}0 and on), {pace}: each"
    wait, name = f" waits {op.after_ms} ms and" if op.after_ms else "", legible(repr(op.name))
    if op.kind == "hostile":
        path = (
            f"in a path that is no marker directory ({op.spelled})" if op.spelled else f"with the hostile name {name}"
        )
        return f"{who}{wait} requests a marker {path}."
    verb = _VERBS.get(op.kind, f"requests {op.kind} of")
    what = f"marker {name}" if op.kind == "create" else "the marker directory"
    place = f" in {directory}" if op.kind == "create" else f" {directory}"
    form = "".join(f" (written {form})" for form in (op.spelled, op.form) if form)
    request = f" as request {op.request}" if op.request else ""
    server = " at the second server" if op.server else ""
    return f"{who}{wait} {verb} {what}{place if directory else ''}{form}{request}{server}."


def _write(write: Write, tables: tuple[str, ...]) -> str:
    wait = f" waits {write.after_ms} ms and" if write.after_ms else ""
    table = f" to {tables[write.table]}" if len(tables) > 1 else ""
    markers = f" with {write.markers} markers" if write.markers else ""
    if write.markers == NO_SERVER:
        markers = " with its embedded timeline server switched off"
    tasks = [_task(task) for task in write.tasks]
    if len(tasks) > TASKS_MAX:
        tasks[TASKS_MAX - 2 :] = [f"{len(tasks) - TASKS_MAX + 2} more tasks"]
    end = ", and gives up before finalize" if write.abandon else ""
    return f"The driver{wait} writes{table}{markers} {'; '.join(tasks) or 'nothing'}{end}."


def _task(task: Task) -> str:
    copies = f" by {task.copies} concurrent attempts" if task.copies > 1 else ""
    pause = f", {task.slow_ms} ms between marker and file" if task.slow_ms else ""
    folder = f"{task.partition}/" if task.partition else ""
    return f"{task.kind} of {folder}{task.group}{copies}{pause}{''.join(map(_stray, task.strays))}"


def _stray(stray: str) -> str:
    what, _, kind = stray.partition("-")
    if what == AS:
        return f", with a {kind} marker"
    return f", and a {kind} marker of every file that other writes have put into the group"


def _fault(fault: Fault, writes: bool) -> str:
    when = _when(fault)
    of_driver = writes and fault.target == "driver"
    if fault.kind is FaultKind.KILL and of_driver:
        return (
            f"{when}, it is killed; its executors run for {fault.settings.executors_ms} ms more"
            f" and the next driver starts {max(0, fault.settings.restart_ms)} ms later."
        )
    if isinstance(fault.trigger, Call) and fault.target in ("driver", "executor"):  # The rest is up to Hudi.
        if fault.kind is FaultKind.KILL:
            return f"{when}, it is killed."
        if fault.kind is FaultKind.TORN_WRITE:
            if "rename" in fault.trigger.operations:
                lost = "the content" if fault.settings.empty else "half of the content"
                return f"{when}, it is killed, and {lost} of the file is lost."
            return f"{when}, half of which is done, it is killed."
    sentence = _SETTING.sub(partial(_setting_words, fault.settings), fault.kind.row.sentence)
    if isinstance(fault.trigger, Call) and "{calls" not in fault.kind.row.sentence:
        sentence += _so_do_others(fault.settings.calls - 1)
    if fault.settings.restart_ms < 0:
        sentence = re.sub("starts again .*", "never starts again", sentence)
    if of_driver:
        sentence = re.sub(
            r"\bit (never )?starts again|(?<=and )(never )?starts again", r"its successor \1\2starts", sentence
        )
    return f"{when}, {sentence}."


def _so_do_others(more: int) -> str:
    """The words for calls that meet a fault after the first one."""
    which = "the one" if more == 1 else f"the {more}" if more < ALL else "all"
    return f", and so at {which} after it" if more > 0 else ""


def _setting_words(settings: FaultSettings, found: re.Match[str]) -> str:
    """The words for a setting in a sentence, from its `FaultRow`."""
    name, words, others = found.groups()
    value = getattr(settings, name)
    holds = value if isinstance(value, bool) else value > 1
    return str(value) if words is None else words.replace("#", str(value)) if holds else others


def _when(fault: Fault) -> str:
    """The words for a fault's trigger: a step, the first affected call after it, a site, or a call."""
    actor = _ACTORS.get(fault.target, fault.target)
    if fault.site:
        often = f"{_TIMES[fault.n - 1]} time" if 0 < fault.n <= len(_TIMES) else f"time number {fault.n}"
        site = SITES[fault.site]
        return f"The {often} {actor} {site.doing}" + (f" during {site.part}" if site.part.isalpha() else "")
    if isinstance(fault.trigger, Call):
        call = fault.trigger
        asked = " or ".join(call.operations) + (f" of a path that matches {call.pattern}" if call.pattern else "")
        actor = f"{actor or 'any process'}{' while it is started again after a death' if call.starting else ''}"
        return f"{'After' if call.when == 'after' else 'At'} call number {call.n} of {actor} ({asked})"
    at_once = fault.kind.row.family in ("process", "proxy")
    return f"At step {fault.n} of {actor}" + ("" if at_once else ", or its next suitable call")


def counted(number: int, what: str) -> str:
    """A number of things in words: "1 run", "1,204 stories"."""
    return f"{number:,} {what if number == 1 else re.sub('y$', 'ie', what) + 's'}"


def printable(text: str) -> str:
    """Text that every terminal and page can show: surrogates and control characters are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)


def brief(text: str) -> str:
    """Printable text in which the middle of a very long word, such as a marker name, is left out."""
    return _LONG.sub(r"\1…\2", printable(text))


def clipped(text: str, most: int) -> str:
    """Printable text of at most so many characters; an ellipsis marks what is left out."""
    shown = printable(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def event_lines(history: History, evidence: tuple[int, ...]) -> tuple[str, ...]:
    """The evidence as lines, in order and without repetition."""
    return tuple(printable(format_event(event)) for event in history.events if event.index in evidence)
