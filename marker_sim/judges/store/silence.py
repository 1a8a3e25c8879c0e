"""What a server did while a request had no answer, as messages of G6 state it, and the cause."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from marker_sim.history.index.calls import MS, Directory, RecordedCall
from marker_sim.history.index.history_index import HistoryIndex
from marker_sim.judges.causes import Causes
from marker_sim.judges.findings import deed_of


class Silence:
    """The answers of every server life of a history, read at the first breach."""

    def __init__(self, view: HistoryIndex) -> None:
        self._view = view
        self._answers: dict[int, list[int]] | None = None
        self._errors: list[int] = []

    def around(self, call: RecordedCall) -> str:
        """Whether an unanswered request's server answered others or had an error: the end of a sentence."""
        view, life = self._view, self._view.lives.get(call.life)
        if life is None or not view.timed_out(call):
            return ""
        if self._answers is None:
            self._read()
        until = view.awaited_until(call)
        died = next(
            (n for n in self._errors if life.start < n < until and view.events[n].process == life.process), None
        )
        if died is not None:
            return f"; a part of {life.process} ended at event {died}: {view.events[died].error}"
        answers = (self._answers or {}).get(life.start, [])
        at, last = bisect_right(answers, call.invoke), bisect_left(answers, until) - 1
        if at <= last:
            return f"; {life.process} answered others meanwhile, the last one at event {answers[last]}"
        since = f"after event {answers[at - 1]}" if at else "since its start"
        return f"; {life.process} answered nothing {since}"

    def cause(self, causes: Causes, directory: Directory, call: RecordedCall, answered: str) -> tuple[str, str]:
        """The cause of a request without a good answer in time: an event in its own directory, or only in others; else
        what is wrong with its answer. And the failure of storage behind it, as the end of a sentence, or "".
        """
        view = self._view
        life, over = view.lives.get(call.life), view.awaited_until(call)
        since = call.invoke if life is None else life.start
        in_time = min(over, view.index_at(view.time_ns(call.invoke) + view.header.answer_bound_ms * MS))
        if not view.timed_out(call) and causes.unreadable(directory, over):
            return "unreadable-file", ""
        own = causes.put_failed(directory.path, since, over)
        failed = own or causes.put_failed(None, since, over)
        why = f"; {deed_of(view, view.events[failed])}" if failed else ""
        if own:
            return "after-failed-flush", why
        if directory.disturbed(call.invoke, in_time):
            return "met-deletion", ""
        if failed or any(d.disturbed(since, in_time) for d in view.directories.values()):
            return "after-trouble-elsewhere", why
        return "unanswered" if view.timed_out(call) else answered, ""

    def _read(self) -> None:
        """Collect the answers, by life, and the errors that ended a part of a process."""
        view, found = self._view, dict[int, list[int]]()
        for _, call in view.calls():
            if call.outcome == "open":
                continue
            if call.outcome == "ok" or view.error_of(call)[:1].isdigit():
                found.setdefault(call.life, []).append(call.done)
        self._answers = {life: sorted(done) for life, done in found.items()}
        self._errors = [event.index for event in view.events if event.operation == "actor-died"]
