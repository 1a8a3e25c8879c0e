"""What a server did while a request had no answer, as stated in messages of every-request-answered (G6)."""

from __future__ import annotations

from bisect import bisect_right

from marker_sim.history.index.calls import RecordedCall
from marker_sim.history.index.history_index import HistoryIndex


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
        at = bisect_right(answers, call.invoke)
        if at < len(answers) and answers[at] < until:
            return f"; {life.process} answered another request at event {answers[at]}"
        since = f"after event {answers[at - 1]}" if at else "since its start"
        return f"; {life.process} answered nothing {since}"

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
