"""Plans and events as sentences: what a reader of a failure has to understand, in the order it happens."""

from __future__ import annotations

from dataclasses import dataclass

from marker_sim.faults import FaultKind
from marker_sim.history import History
from marker_sim.judges.violations import format_event
from marker_sim.plan import Fault, Op, Plan, Write


def plan_sentences(plan: Plan) -> tuple[str, ...]:
    """The set-up, then each actor's operations in their order, then the faults by actor and step."""
    places = ", ".join((*plan.directories, *(plan.tables if plan.writes else ())))
    head = (
        f"{plan.mode.capitalize()} markers on {plan.storage}, {plan.num_threads} marker file(s), a batch every"
        f" {plan.interval_ms} ms, in {places}."
    )
    if plan.writes:
        kind = "MERGE_ON_READ" if plan.merge_on_read else "COPY_ON_WRITE"
        server = "" if plan.embedded else " The timeline server outlives the driver."
        head += f" {kind} tables, {plan.executors} executor(s).{server}"
    many = len(plan.directories) > 1
    operations = tuple(_operation(op, plan.directories[op.directory] if many else "") for op in plan.ops)
    order = sorted(plan.faults, key=lambda fault: (fault.actor, fault.step))
    if not plan.entries:
        head += " No operation and no fault is needed: the probe that ends every run shows it."
    writes = tuple(_write(write, plan.tables) for write in plan.writes)
    return (head, *operations, *writes, *(_fault(fault, bool(plan.writes)) for fault in order))


def _operation(op: Op, directory: str) -> str:
    words = [op.actor]
    if op.after_ms:
        words.append(f"waits {op.after_ms} ms and")
    if op.kind == "hostile":
        return " ".join([*words, f"asks for a marker with the hostile name {printable(op.name)!r}."])
    words.append(
        {"create": "creates", "delete": "deletes", "exists": "asks about"}.get(op.kind, f"asks for {op.kind} of")
    )
    words.append(f"marker {op.name!r}" if op.kind == "create" else "the marker directory")
    if directory:
        words.append(f"in {directory}" if op.kind == "create" else directory)
    if op.request:
        words.append(f"as request {op.request}")
    if op.server:
        words.append("at the second server")
    return " ".join(words) + "."


def _write(write: Write, tables: tuple[str, ...]) -> str:
    words = ["The driver"]
    if write.after_ms:
        words.append(f"waits {write.after_ms} ms and")
    words.append("writes" + (f" to {tables[write.table]}" if len(tables) > 1 else ""))
    if write.markers:
        words.append(f"with {write.markers} markers")
    tasks = []
    for task in write.tasks:
        text = f"{task.kind} of {task.partition + '/' if task.partition else ''}{task.group}"
        text += f" by {task.copies} attempts at once" if task.copies > 1 else ""
        tasks.append(text + (f", {task.slow_ms} ms between marker and file" if task.slow_ms else ""))
    shown = tasks if len(tasks) <= 12 else [*tasks[:10], f"{len(tasks) - 10} more tasks"]
    words.append("; ".join(shown) if shown else "nothing")
    return " ".join(words) + (", and gives up before it finalizes." if write.abandon else ".")


def _fault(fault: Fault, writes: bool) -> str:
    if fault.kind is FaultKind.KILL and fault.actor == "driver" and writes:
        return (
            f"{_when(fault, 'At')} the driver is killed; its executors go on for {fault.value} ms and the next"
            f" driver begins {max(0, fault.duration_ms)} ms later."
        )
    phrase = fault.kind.row.sentence.format(ms=fault.duration_ms, n=fault.value)
    if fault.duration_ms < 0:
        phrase = phrase.split(" and starts again")[0] + " and never starts again"
    who = "the driver" if fault.actor == "driver" else fault.actor
    if writes and fault.actor == "driver":
        phrase = phrase.replace("it starts again", "its successor begins").replace("and starts", "and another starts")
    return f"{_when(fault, 'From')}, at the first call that fits, {who} {phrase}."


def _when(fault: Fault, word: str) -> str:
    """The step or the arrival from which on a fault is due."""
    if fault.site:
        return f'{word} its arrival number {fault.step} at "{fault.site}"' + (" on" if word == "From" else "")
    return f"{word} its step {fault.step}" + (" on" if word == "From" else "")


def printable(text: str) -> str:
    """Text that every terminal and page can show: surrogates and control characters are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One event as shown. proves: it is evidence. gap: events before it are left out."""

    text: str
    proves: bool
    gap: bool


def in_context(history: History, evidence: tuple[int, ...], around: int = 2) -> tuple[Line, ...]:
    """The evidence and up to `around` events on both sides of each, in order, each once."""
    wanted = {index + offset for index in evidence for offset in range(-around, around + 1)}
    lines: list[Line] = []
    before = -1
    for event in history.events:
        if event.index in wanted:
            gap = event.index != before + 1
            lines.append(Line(text=printable(format_event(event)), proves=event.index in evidence, gap=gap))
            before = event.index
    return tuple(lines)
