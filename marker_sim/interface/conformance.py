"""The items that `pytest --marker-sut` adds: one for each guarantee in each place, which is a marker mode on a storage.

The state machines run once in a place (campaign/machines/runs.py), when the first of its items does; then every item
reports the result of its guarantee:

    passed     it holds
    failed     it is violated, and that is not in the baseline; or no guarantee could be judged in the place
    xfailed    it is violated as the baseline says
    skipped    no example decided it; the class needs something that the storage does not offer

A place has a report like that of `verify`, in its own directory below `.hypothesis/marker-sim`. With pytest-xdist all
items of a place are one `xdist_group`. Without `--dist loadgroup`, or with pytest 9.2 and pytest-xdist 3.8, several
workers may have some, and do the same work.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.machines.machine import PLANS
from marker_sim.campaign.machines.runs import MachineRuns
from marker_sim.campaign.runs import MODES_AGREE
from marker_sim.errors import HarnessError, UsageError
from marker_sim.faults import FAULT_CLASSES
from marker_sim.judges.baselines.baseline import Known, load_baseline, seen_in
from marker_sim.judges.guarantees import BY_ID, GUARANTEES
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.loading import load_system
from marker_sim.plan import MODES
from marker_sim.report.directory import writing
from marker_sim.report.notes import known_text
from marker_sim.report.table import as_text, print_failure
from marker_sim.report.verdict import VerdictOutcome, judge_campaign
from marker_sim.report.words import brief
from marker_sim.report.write import write_outcome
from marker_sim.surroundings.files import held, make_ignored
from marker_sim.targets.python import served, try_every_call
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest

STORAGES = ("s3", "local", "hdfs")
NODE = "marker-sim"
PROPERTY = "marker-sim"
TEXT_WIDTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """The system to judge, its modes and storages, its promises and its known violations."""

    sut: str
    places: tuple[tuple[str, str], ...]
    profile: Profile
    baseline: frozenset[Known] | None
    seed: int

    def guarantees(self, mode: str, storage: str) -> Iterator[str]:
        """The ids of the guarantees promised in a place, without the one that compares modes."""
        for each in GUARANTEES:
            promises = (self.profile.promise(each.id, mode, storage, under) for under in FAULT_CLASSES)
            if each.id != MODES_AGREE and any(promise.promised for promise in promises):
                yield each.id


def parse_judging(sut: str, expect: str | None, seed: int) -> Judging:
    """The request in pytest's options; UsageError when there is no such system or baseline."""
    try:
        system = load_system(sut)
        places = tuple((mode, storage) for mode in MODES for storage in STORAGES if served(system, mode, storage))
        with suppress(HarnessError):  # The items of the place report it too.
            for place in places:
                try_every_call(system, *place)
    except UsageError as error:
        raise UsageError(_as_option(error)) from error
    return Judging(
        sut=sut,
        places=places,
        profile=load_profile(system.profile),
        baseline=None if expect is None else load_baseline(expect),
        seed=seed,
    )


def _as_option(error: UsageError) -> str:
    return " ".join(str(error).replace("--sut", "--marker-sut").split())


def judge_place(judging: Judging, mode: str, storage: str, folder: Path) -> VerdictOutcome:
    """Run the machines in a place and write the results into a subfolder for that place.

    HarnessError when the kit fails before anything was judged; KeyboardInterrupt for Ctrl-C.
    """
    report = folder / re.sub(r"\W", "_", judging.sut) / f"{mode}-{storage}"
    request = CampaignRequest(
        target=parse_target(judging.sut),
        modes=(mode,),
        storages=(storage,),
        seed=judging.seed,
        canaries=False,
        profile=judging.profile,
        baseline=judging.baseline,
        report=report,
    )
    campaign = run_campaign(request, lambda line: None, of_plans=MachineRuns)
    if campaign.interrupted:
        raise KeyboardInterrupt
    again = ("verify", "--sut", judging.sut, "--mode", mode, "--storage", storage)
    outcome = judge_campaign(campaign, judging.profile, judging.baseline, report, again)
    with writing(report):
        make_ignored(folder)
        report.parent.mkdir(exist_ok=True)
        with held(report.parent, wait=True):  # Another worker may have judged the same place.
            shutil.rmtree(report, ignore_errors=True)  # Its plans were replayed, and failures are written anew.
            write_outcome(outcome, report)
    return outcome


class Place(pytest.Collector):
    """The items of one mode and storage, and the results of the machines there."""

    def __init__(self, *, judging: Judging, mode: str, storage: str, **node: Any) -> None:
        super().__init__(**node)
        self.judging, self.mode, self.storage = judging, mode, storage
        self._outcome: VerdictOutcome | HarnessError | UsageError | None = None

    @property
    def played(self) -> bool:
        """Whether the machines have run in this place."""
        return self._outcome is not None

    def collect(self) -> Iterator[pytest.Item]:
        """An item for each guarantee that is promised here."""
        grouped = self.config.pluginmanager.hasplugin("xdist")
        for guarantee in self.judging.guarantees(self.mode, self.storage):
            name = f"{guarantee}-{BY_ID[guarantee].slug}[{self.name}]"
            item: GuaranteeItem = GuaranteeItem.from_parent(self, name=name, guarantee=guarantee)
            if grouped:
                item.add_marker(pytest.mark.xdist_group(f"marker-sim-{self.name}"))
            yield item

    def outcome(self) -> VerdictOutcome:
        """The results of the machines, which run once. Raises HarnessError or UsageError, each time, if they cannot."""
        if self._outcome is None:
            folder = Path(os.path.relpath(self.config.rootpath / PLANS, self.config.invocation_params.dir))
            try:
                self._outcome = judge_place(self.judging, self.mode, self.storage, folder)
            except (HarnessError, UsageError) as error:
                self._outcome = error
        if isinstance(self._outcome, HarnessError | UsageError):
            raise self._outcome
        return self._outcome


class GuaranteeItem(pytest.Item):
    """The item for one guarantee in a place."""

    def __init__(self, *, guarantee: str, **node: Any) -> None:
        super().__init__(**node)
        self.guarantee, self._reason = guarantee, ""

    @property
    def place(self) -> Place:
        """The mode and storage in which it is judged."""
        assert isinstance(self.parent, Place)
        return self.parent

    def reportinfo(self) -> tuple[Path, None, str]:
        """The heading of its failure; it has no source file."""
        return self.config.rootpath, None, self.name

    def runtest(self) -> None:
        """Pass, fail, skip or xfail by the verdict on the guarantee."""
        first = not self.place.played
        try:
            outcome = self.place.outcome()
        except UsageError as error:
            self._fail(_as_option(error))
        except HarnessError as error:
            self._fail(f"the kit or its environment failed, which says nothing about the class: {error}")
        if first:
            self.user_properties.append((PROPERTY, place_line(outcome, self.place.name)))
        row = next((row for row in outcome.rows if row.id == self.guarantee), None)
        if row is not None and row.verdict == "violated":
            if reason := known_reason(row, outcome, self.place.judging.baseline or frozenset()):
                pytest.xfail(reason)
            items = (item for item in self.session.items if isinstance(item, GuaranteeItem))
            beside = {item.guarantee for item in items if item.place is self.place}
            self._fail(row.message, violated_text(outcome, self.guarantee, beside))
        campaign = outcome.campaign
        if campaign.trouble:
            self._fail(f"the kit could not judge this place to its end: {campaign.trouble}")
        if campaign.not_reached:
            self._fail("; ".join(campaign.not_reached))
        if campaign.left_out:
            pytest.skip(f"{campaign.left_out[0]}; storage.capabilities says what it does")
        if not any(each.judged for each in outcome.rows):
            self._fail("nothing at all was judged here, so nothing is known")
        if row is None or row.verdict != "holds":
            pytest.skip(f"nothing to judge: {(row.message if row else '') or 'it does not apply to such a class'}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The failure's text, with its reason in the short summary."""
        shown = super().repr_failure(excinfo, style)
        crash = getattr(shown, "reprcrash", None)
        if self._reason and crash is not None:
            crash.message = self._reason
        return shown

    def _fail(self, reason: str, text: str = "") -> None:
        self._reason = brief(" ".join(reason.split()))
        pytest.fail(text or self._reason, pytrace=False)


def known_reason(row: VerdictRow, outcome: VerdictOutcome, baseline: frozenset[Known]) -> str:
    """The baseline's text for a violated row; "" where there are violations beyond the baseline."""
    if outcome.counts(row):
        return ""
    known = [each for each in sorted(baseline) if any(map(each.covers, seen_in(row)))]
    return "known: " + "; ".join(known_text(each) + (f", {each.story}" if each.story else "") for each in known)


def violated_text(outcome: VerdictOutcome, guarantee: str, beside: Iterable[str]) -> str:
    """The story of a violated guarantee, shortened where another item shows the same defect.

    beside: the guarantees of those items.
    """
    first = next(failure for failure in outcome.failures if failure.guarantee == guarantee)
    story = next(story for story in outcome.stories if first in story)
    leading = story[0].guarantee
    if leading != guarantee and leading in beside:
        replay = outcome.command(first)
        return f"{brief(first.message)}\nmost likely the defect of {leading}, see there\nreplay: {replay}"
    whole = (first, *(each for each in story if each is not first))
    text = as_text(lambda console: print_failure(outcome, whole, console, True), TEXT_WIDTH)
    unexpected = () if outcome.differences is None else outcome.differences.unexpected
    new = (f"  not in the baseline: {known_text(known)}" for known in unexpected if known.guarantee == guarantee)
    return "\n".join((text, *new))


def place_line(outcome: VerdictOutcome, name: str) -> str:
    """What was run in a place, and what was left out."""
    campaign = outcome.campaign
    stale = outcome.differences.stale if outcome.differences else ()
    rare = ", ".join(missed.removeprefix("fault ") for missed in campaign.too_rare)
    return "; ".join(
        (
            f"{name}: {campaign.runs} examples of the state machines, {campaign.statistics.steps:,} steps",
            f"{campaign.statistics.faults.total():,} faults{f', none of {rare}' if rare else ' of every kind'}",
            *(f"in the baseline and not seen: {known_text(each)}" for each in stale),
        )
    )


def not_played(judging: Judging) -> str:
    """The modes and storages that no item covers, and the command that does."""
    promised = {guarantee for place in judging.places for guarantee in judging.guarantees(*place)}
    left = ", ".join(each.id for each in GUARANTEES if each.id not in {*promised, MODES_AGREE})
    return (
        f"not played: {f'{left}, which are not promised; ' if left else ''}real processes and Spark; S3 without"
        f" conditional requests; both modes on the same plan ({MODES_AGREE}); crash points one by one. More is played"
        f" by `marker-sim verify --sut {judging.sut}` and `marker-sim chaos --sut {judging.sut}`"
    )


def items_of(session: pytest.Session, judging: Judging) -> Iterator[pytest.Item]:
    """All items of all places, to be added to a session."""
    for mode, storage in judging.places:
        place = Place.from_parent(
            session, name=f"{mode}-{storage}", nodeid=NODE, judging=judging, mode=mode, storage=storage
        )
        yield from (item for item in session.genitems(place) if isinstance(item, pytest.Item))
