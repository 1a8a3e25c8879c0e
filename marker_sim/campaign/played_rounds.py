"""The runs of a campaign that are rounds in real time: drawn one by one, a few played beside each other, judged."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from marker_sim.campaign.coverage import tampered_history
from marker_sim.campaign.pieces import Broken, Kind, PieceResult, SearchState, stops
from marker_sim.campaign.result import Campaign
from marker_sim.errors import HarnessError
from marker_sim.judges import judge
from marker_sim.targets.target import PlayedRun, Rounds


class PlayedRounds:
    """The rounds of one campaign. A context manager: inside it are the storage and the processes that they need."""

    _rounds: Rounds

    def __init__(self, search: SearchState) -> None:
        self._search = search
        self._stack = ExitStack()
        self._number = 0

    def __enter__(self) -> PlayedRounds:
        search = self._search
        self._rounds = self._stack.enter_context(search.request.target.rounds(search.request, search.progress))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def worth_keeping(self) -> bool:
        """Whether there is anything to report when the campaign ends early."""
        return bool(self._search.found)

    def pieces(self) -> Iterator[PieceResult]:
        """Each round, judged, as it ends."""
        try:
            for drawn, played in self._ended():
                self._rounds.took(drawn, played)
                yield self._judged(played)
        except OSError as error:
            raise HarnessError(f"the kit's own files failed: {error.strerror or error} ({error.filename})") from error

    def merged(self, piece: PieceResult, new: dict[Kind, Broken]) -> None:
        """A round was counted: say how far it is."""
        search = self._search
        broken = ", ".join(sorted({kind[0] for kind in search.found}, key=lambda name: int(name[1:]))) or "none"
        search.progress(f"{self._rounds.line(search.statistics, search.steps)}, violated so far: {broken}")

    def shrink(self) -> None:
        """A round is no plan yet, so nothing is made small."""

    def check(self) -> None:
        """Real time decides what meets what, so no round comes out twice."""

    def complete(self, campaign: Campaign) -> Campaign:
        """What the target says of its rounds, and whether the judges see a false statement in the last history."""
        planted = tampered_history.let_go(campaign.last) if self._search.request.canaries else None
        return replace(self._rounds.complete(campaign), canary=planted)

    def _next(self) -> Any:
        """The next round, unless a violation ends the campaign."""
        search = self._search
        if search.request.stop_at_first and stops(search.statistics, search.found, search.request):
            return None
        drawn = self._rounds.draw(search.statistics.reached)
        if drawn is not None:
            search.progress(drawn.line)
        return drawn

    def _ended(self) -> Iterator[tuple[Any, PlayedRun]]:
        """Rounds as they end, `lanes` of them going until no further one fits.

        A single lane is this thread, where Ctrl-C is heard. Rounds that are under way when this is left end at once,
        which the pool waits for.
        """
        rounds = self._rounds
        if rounds.lanes == 1:
            while (drawn := self._next()) is not None:
                yield drawn, rounds.play(drawn)
            return
        going: dict[Future[PlayedRun], Any] = {}
        with ThreadPoolExecutor(rounds.lanes) as pool:
            try:
                while True:
                    while len(going) < rounds.lanes and (drawn := self._next()) is not None:
                        going[pool.submit(rounds.play, drawn)] = drawn
                    if not going:
                        return
                    for done in wait(going, return_when=FIRST_COMPLETED).done:
                        yield going.pop(done), done.result()
            finally:
                rounds.close()

    def _judged(self, played: PlayedRun) -> PieceResult:
        """A round as a piece of one run."""
        request, history, piece = self._search.request, played.history, PieceResult()
        findings = judge(history, request.guarantees)
        piece.statistics.add(history, findings)
        for name, count in sorted(played.counts.items()):
            piece.statistics.reach(name, count)
        piece.steps = sum(event.kind == "invoke" for event in history.events)
        piece.last = history
        piece.keep(self._number, None, history, findings, request.profile)
        piece.interrupted = played.interrupted
        piece.error = HarnessError(played.trouble) if played.trouble else None
        self._number += 1
        return piece
