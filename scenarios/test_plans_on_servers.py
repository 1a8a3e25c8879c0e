"""Plans run against a real server: what each fault does to it or its clients, small plans, and replay."""

from __future__ import annotations

import html
import io
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from rich.console import Console

from marker_sim.cli import main
from marker_sim.faults import Call, Fault, FaultKind, Site, Step
from marker_sim.history import Event, History
from marker_sim.judges import judge
from marker_sim.plan import COPY, MALFORMED, Op, Plan, read_plan
from marker_sim.unusual_names import KEPT
from properties.faces.campaign import broken_in
from properties.faces.cli import Wanted, run_again
from properties.faces.judges import load_profile
from properties.faces.outcome import REFUSED, Failure, Kind
from properties.faces.report import judge_campaign, write_outcome
from properties.faces.targets import CampaignRequest, HttpTarget, RealRuns, ServerOptions
from properties.faces.worlds import HOSTILE, OF_PLANS
from properties.volume import volume
from scenarios.test_http import START, asked, campaign
from scenarios.test_http_s3 import START as START_S3

ONE = Op(actor="executor-0", kind="create", name="p/a0.marker.CREATE")
OTHER = Op(actor="executor-0", kind="create", name="p/a1.marker.CREATE", after_ms=20)


@contextmanager
def real_runs(tmp_path: Path, broken: str = "none", storage: str = "local", ahead: bool = False) -> Iterator[RealRuns]:
    start = START if storage == "local" else START_S3
    request = CampaignRequest(
        target=HttpTarget(ahead=ahead), modes=("timeline",), storages=(storage,), seed=1, profile=load_profile("http"),
        budget_s=600.0, server=ServerOptions(start=f"{start} --broken {broken}" if broken != "none" else start),
        report=tmp_path,
    )  # fmt: skip
    with request.target.real_runs(request, lambda line: None) as opened:
        yield opened


def history_of(opened: RealRuns, *faults: Fault, ops: tuple[Op, ...] = (ONE, OTHER), probing: bool = False) -> History:
    plan = Plan(mode="timeline", storage="local", num_threads=2, interval_ms=50, ops=ops, faults=faults)
    return opened.again(plan, time.monotonic() + 60, False, probing).history


def ends(history: History, name: str) -> list[str]:
    """How the creates of a name ended, and how often they arrived."""
    invokes = [event.index for event in history.events if event.kind == "invoke" and event.path == name]
    own = [event for event in history.events if event.caused_by in invokes]
    completed = [event.kind for event in own if event.kind in ("ok", "fail", "info")]
    return [*(event.operation for event in own if event.operation == "arrived"), *completed]


def faults_in(history: History) -> list[Event]:
    return [event for event in history.events if event.kind == "fault" and event.value != "end-of-run"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRuns]:
    with real_runs(tmp_path_factory.mktemp("report")) as one:
        yield one


@pytest.mark.parametrize(
    ("kind", "settings", "first", "second"),
    [
        (FaultKind.REQUEST_LOST, {}, ["info"], ["arrived", "ok"]),
        (FaultKind.REPLY_LOST, {}, ["arrived", "info"], ["arrived", "ok"]),
        (FaultKind.RESET, {"lost": True}, ["info"], ["arrived", "ok"]),
        (FaultKind.RESET, {}, ["arrived", "info"], ["arrived", "ok"]),
        (FaultKind.DELAYED, {"late_ms": 60}, ["arrived", "ok"], ["arrived", "ok"]),
        (FaultKind.DUPLICATED, {"late_ms": 5}, ["arrived", "arrived", "ok"], ["arrived", "ok"]),
        (FaultKind.KILL, {}, ["arrived"], ["arrived", "ok"]),
    ],
)
def test_what_happens_to_a_request_is_what_its_fault_says(
    opened: RealRuns, kind: FaultKind, settings: dict[str, object], first: list[str], second: list[str]
) -> None:
    history = history_of(opened, Fault.of(kind, "executor-0", Site("executor: marker asked for", 1), **settings))
    assert [event.operation for event in faults_in(history)] == [kind.value]
    assert sorted(ends(history, ONE.name)) == sorted(first)
    assert ends(history, OTHER.name) == second
    lives = {event.process for event in history.events if event.path == OTHER.name and event.kind == "invoke"}
    assert lives == ({"executor-0"} if "ok" in first else {"executor-0.1"}), "nobody acts again after an unknown end"


@pytest.mark.parametrize("site", ["server: request queued", "server: reply", "server: batch file written", ""])
def test_a_server_dies_where_the_plan_says_and_another_one_serves(opened: RealRuns, site: str) -> None:
    trigger = Site(site, 1) if site else Step(1)
    history = history_of(opened, Fault.of(FaultKind.KILL, "server", trigger), probing=True)
    killed = [event for event in faults_in(history) if event.operation == "kill"]
    assert len(killed) == 1 and any(event.operation == "restart" for event in faults_in(history))
    if site == "server: batch file written":
        assert killed[0].path is not None and killed[0].path.endswith("MARKERS0")
    assert sum(event.kind == "ok" and event.process.startswith("probe-") for event in history.events) == 3


def test_a_second_server_serves_the_operations_that_are_for_it(opened: RealRuns) -> None:
    ops = (ONE, Op(actor="executor-0", kind="create", name="p/b.marker.CREATE", server=1, after_ms=900))
    begins = Fault.of(FaultKind.SECOND_SERVER, "server", Step(1), for_ms=1_500)
    history = history_of(opened, begins, ops=ops)
    started = [event.index for event in history.events if event.operation == "started"]
    asked = {event.path: event.caused_by for event in history.events if event.kind == "invoke"}
    assert len(started) == 2 and asked["p/b.marker.CREATE"] == started[1] != asked[ONE.name]


def test_a_server_without_a_fault_serves_the_next_run_and_tables_are_apart(opened: RealRuns) -> None:
    runs = [history_of(opened) for _ in range(4)]  # After so many runs another server serves: at most once in four.
    lives = [{event.process for event in each.events if event.operation == "started"} for each in runs]
    tables = [{event.table for event in each.events if event.table} for each in runs]
    assert sum(one == other for one, other in pairwise(lives)) >= 2
    assert not any(one & other for one, other in combinations(tables, 2))


@pytest.mark.parametrize("broken", ["rewritten-in-place", "torn-in-place"])
def test_a_server_that_writes_in_place_and_dies_within_a_write_loses_what_it_held(tmp_path: Path, broken: str) -> None:
    ops = tuple(replace(ONE, name=f"p/a{number}.marker.CREATE") for number in range(8))
    plan = Plan(
        mode="timeline", storage="local", num_threads=1, interval_ms=50, ops=ops,
        faults=(Fault.of(FaultKind.TORN_WRITE, "server", Site("server: batch file put", 3)),),
    )  # fmt: skip
    with real_runs(tmp_path, broken) as opened:
        played = opened.again(plan, time.monotonic() + 60)
    assert [event.error for event in faults_in(played.history) if event.operation == "kill"] == ["write"]
    (lost,) = (finding for finding in judge(played.history) if finding.guarantee == "G3")
    assert lost.breaches, "such a kill loses what was answered"


def test_a_server_that_writes_in_place_is_not_accused_while_nobody_kills_it(tmp_path: Path) -> None:
    crowd = Op(actor="executor-0", kind="create", name=f"p/a{COPY}.marker.CREATE", copies=60, apart_ms=15)
    plan = Plan(mode="timeline", storage="local", num_threads=1, interval_ms=25, ops=(crowd,))
    with real_runs(tmp_path, "torn-in-place") as opened:
        histories = [opened.again(plan, time.monotonic() + 60).history for _ in range(3)]
    assert [broken_in(history, plan, load_profile("http")) for history in histories] == [{}] * 3
    seen = [finding for history in histories for finding in judge(history) if finding.guarantee == "G23"]
    assert any(finding.breaches for finding in seen), "no single read met a file in the middle of being written"


def test_a_full_disk_that_two_faults_fill_has_room_again_when_both_are_over(opened: RealRuns) -> None:
    full = [Fault.of(FaultKind.DISK_FULL, "server", Step(number), for_ms=300) for number in (1, 2)]
    history = history_of(opened, *full, probing=True)
    assert [event.value for event in faults_in(history)] == ["begin", "end"]
    assert sum(event.kind == "ok" and event.process.startswith("probe-") for event in history.events) == 3


def test_a_full_disk_refuses_the_first_files_of_a_directory(opened: RealRuns) -> None:
    full = Fault.of(FaultKind.DISK_FULL, "server", Step(1), for_ms=1_000)
    history = history_of(opened, full, ops=(ONE, replace(ONE, after_ms=1_500)))
    assert ends(history, ONE.name) == ["arrived", "arrived", "info", "ok"]


def test_storage_fails_for_one_file_and_not_its_neighbour(opened: RealRuns) -> None:
    at = Call(rf"^{re.escape(FAILING)}/MARKERS0$", ("put",), 1)
    history = history_of(opened, Fault.of(FaultKind.IO_ERROR, "server", at, calls=1_000), ops=(ONE,))
    assert {(event.path or "").rpartition("/")[2] for event in faults_in(history)} == {"MARKERS0"}
    stored = {(event.path or "").rpartition("/")[2] for event in history.events if event.kind == "effect"}
    assert "MARKERS.type" in stored and "MARKERS0" not in stored


@pytest.mark.parametrize("broken", ["none", "swallows-failure"])
def test_a_full_disk_is_survived_unless_errors_are_swallowed(tmp_path: Path, broken: str) -> None:
    full = Fault.of(FaultKind.DISK_FULL, "server", Step(1), for_ms=1_500)
    meanwhile, later = replace(OTHER, after_ms=700), replace(OTHER, name="p/b.marker.CREATE", after_ms=2_500)
    with real_runs(tmp_path, broken) as opened:
        history = history_of(opened, full, ops=(ONE, meanwhile, later))
    assert [event.operation for event in faults_in(history)] == ["disk-full", "disk-full"]
    created = {event.path for event in history.events if event.kind == "ok" and event.operation == "create"}
    assert later.name in created and (meanwhile.name in created) == (broken != "none")
    assert bool(broken_in(history, None, load_profile("http"))) == (broken != "none")


@pytest.mark.parametrize(("storage", "broken"), [("local", "none"), ("s3", "none"), ("local", "memory-only")])
def test_a_directory_that_another_program_removes_is_missed_by_who_never_looks_again(
    tmp_path: Path, storage: str, broken: str
) -> None:
    removed = Fault.of(FaultKind.DIRECTORY_REMOVED, "executor-0", Step(2))
    plan = Plan(mode="timeline", storage=storage, num_threads=2, ops=(ONE, ONE), faults=(removed,))
    with real_runs(tmp_path, broken, storage) as opened:
        history = opened.again(plan, time.monotonic() + 60, False, False).history
    answers = [event.value for event in history.events if event.kind == "ok" and event.path == ONE.name]
    assert answers == (["created", "created"] if broken == "none" else ["created", "exists"])
    assert [event.process for event in faults_in(history)] == ["outside-1", "outside-1"]
    found = broken_in(history, plan, load_profile("http"))
    assert {each.breach.under for each in found.values()} == (set() if broken == "none" else {"outside"})
    assert not broken_in(history, plan, load_profile("hudi")), "Hudi does not promise that"


@pytest.mark.parametrize("broken", ["none", "accepts-anything"])
def test_hostile_operations_reach_a_server_as_the_plan_writes_them(tmp_path: Path, broken: str) -> None:
    ops = (
        replace(ONE, spelled="slash-at-end"),
        ONE,
        replace(ONE, kind="hostile", name="p/\udcff.marker.CREATE"),
        replace(ONE, kind="hostile", name="p/\n.marker.CREATE"),
        *(replace(ONE, kind="hostile", spelled=form) for form in MALFORMED),
    )
    plan = Plan(mode="timeline", storage="local", num_threads=1, ops=ops)
    with real_runs(tmp_path, broken) as opened:
        played = opened.again(plan, time.monotonic() + 60, False, False)
    ends = [event for event in played.history.events if event.process == "executor-0" and event.kind in ("ok", "fail")]
    assert [event.value for event in ends[:2]] == ["created", "exists"], "two spellings of one directory"
    taken = [event.kind for event in ends[2:]]
    assert taken == ["fail", "fail" if broken == "none" else "ok", *["fail"] * len(MALFORMED)]
    assert played.counts[OF_PLANS + HOSTILE] == len(MALFORMED)
    asked = [event.value for event in played.history.events if event.kind == "invoke" and event.operation == "hostile"]
    assert asked[0] == b"p/\xff.marker.CREATE"
    found = broken_in(played.history, plan, load_profile("http"))
    assert ("G12" in {kind[0] for kind in found}) == (broken != "none")


@pytest.mark.parametrize("broken", ["none", "splits-oddly"])
def test_an_odd_name_is_kept_through_a_death_unless_it_is_read_otherwise(tmp_path: Path, broken: str) -> None:
    names = [replace(ONE, name=name) for name in KEPT]
    killed = Fault.of(FaultKind.KILL, "server", Step(len(names)))
    plan = Plan(mode="timeline", storage="local", num_threads=1, ops=(*names, OTHER), faults=(killed,))
    with real_runs(tmp_path, broken) as opened:
        history = opened.again(plan, time.monotonic() + 60).history
    kept = {event.path for event in history.events if event.kind == "ok" and event.operation == "create"}
    assert set(KEPT) & kept and ("\u2028" in "".join(filter(None, kept))) == (broken != "none"), (
        "it may refuse that one"
    )
    assert ("G4" in {kind[0] for kind in broken_in(history, plan, load_profile("http"))}) == (broken != "none")


FAILING, FINE = "t/.hoodie/.temp/001", "t/.hoodie/.temp/002"
APART = tuple(replace(op, directory=number, actor=f"executor-{number}") for number in (0, 1) for op in (ONE, OTHER))


@pytest.mark.parametrize(
    ("storage", "kind", "settings"),
    [("local", FaultKind.IO_ERROR, {"calls": 1_000}), ("s3", FaultKind.SERVER_ERROR, {"calls": 1_000})],
)
def test_storage_that_fails_below_one_directory_harms_no_other(
    tmp_path: Path, storage: str, kind: FaultKind, settings: dict[str, int]
) -> None:
    fails = Fault.of(kind, "server", Call(f"^{re.escape(FAILING)}/", ("put",), 1), **settings)
    plan = Plan(
        mode="timeline", storage=storage, num_threads=2, interval_ms=50, directories=(FAILING, FINE), ops=APART,
        faults=(fails,),
    )  # fmt: skip
    with real_runs(tmp_path, storage=storage) as opened:
        history = opened.again(plan, time.monotonic() + 60, False, False).history
    assert {event.operation for event in faults_in(history)} == {kind.value}
    answered = {event.instant for event in history.events if event.kind == "ok" and event.operation == "create"}
    assert answered == {"002"}
    (isolated,) = (finding for finding in judge(history) if finding.guarantee == "G7")
    assert isolated.judged and not isolated.breaches


@pytest.mark.parametrize("broken", ["none", "stores-nothing"])
def test_a_server_that_puts_nothing_has_met_no_failing_put(tmp_path: Path, broken: str) -> None:
    fails = Fault.of(FaultKind.SERVER_ERROR, "server", Call(f"^{re.escape(FAILING)}/", ("put",), 1), calls=1_000)
    plan = Plan(mode="timeline", storage="s3", num_threads=2, directories=(FAILING,), ops=(ONE,), faults=(fails,))
    with real_runs(tmp_path, broken, "s3") as opened:
        played = opened.again(plan, time.monotonic() + 60, False, False)
    assert bool(played.counts.get(OF_PLANS + REFUSED)) == (broken == "none")
    assert ("G1" in {kind[0] for kind in broken_in(played.history, plan, load_profile("http"))}) == (broken != "none")


NOISE = tuple(
    Op(actor=f"executor-{1 + number % 9}", kind="create", directory=number % 3, name=f"q/n{number}.marker.CREATE")
    for number in range(volume(36, quick=9))
)
LIST = Op(actor="executor-0", kind="list", directory=1)
HIDDEN = Plan(
    mode="timeline", storage="local", num_threads=2, interval_ms=50,
    directories=("t/.hoodie/.temp/001", "t/.hoodie/.temp/002", "u/.hoodie/.temp/001"),
    ops=(*NOISE, LIST, replace(ONE, directory=1, after_ms=10), replace(LIST, after_ms=10)),
    faults=(Fault.of(FaultKind.REPLY_LOST, "executor-3", Site("executor: marker asked for", 1)),),
)  # fmt: skip
STALE = ("G11", "timeline", "local")


def test_a_run_that_its_deadline_cut_short_says_so(opened: RealRuns) -> None:
    plan = Plan(mode="timeline", storage="local", num_threads=2, interval_ms=50, ops=(replace(ONE, after_ms=1_500),))
    assert opened.again(plan, time.monotonic() + 0.7, False, False).cut
    assert not opened.again(plan, time.monotonic() + 60, False, False).cut


def test_a_failure_is_made_small_and_replayed_on_its_server_and_on_a_mended_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, broken = stale_in_a_run(tmp_path)
    failure = replace(broken, entries_before=HIDDEN.entries + 60, large="there was no time left")
    start = ServerOptions(start=f"{START} --broken stale-list").to_dict()
    done = replace(campaign(asked(tmp_path, runs=1)), failures=(failure,), server=start)
    write_outcome(judge_campaign(done, load_profile("http"), None, tmp_path, ("verify",)), tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"shrunk from {HIDDEN.entries + 60}" in page
    file = tmp_path / "plan.json"
    goes_on = f"there was no time left; `marker-sim shrink {shlex.quote(str(file))}` goes on"
    assert f"it may become smaller yet: {goes_on}" in html.unescape(page)

    capsys.readouterr()
    assert main(["shrink", str(file), "--budget", "60s"]) == 1
    said = capsys.readouterr().out
    made = read_plan(file)
    assert made.entries <= 4 and not made.faults and len(made.directories) == 1
    wanted = rf"SMALLER: G11 .*: {HIDDEN.entries} entries before, {made.entries} now; breaks in (\d+) of 10 runs"
    how = re.match(wanted, said)
    assert how and int(how[1]) >= 5, said
    code, said = replayed(file, 4)
    assert code == 1 and re.match(r"STILL VIOLATED, [1-4] of 4: G11", said), said

    content = (tmp_path / "verdict.json").read_text(encoding="utf-8")
    (tmp_path / "verdict.json").write_text(content.replace(" --broken stale-list", ""), encoding="utf-8")
    code, said = replayed(file, 2)
    assert code == 3 and said.startswith("NOT REPRODUCED, 0 of 2: "), said


def stale_in_a_run(tmp_path: Path) -> tuple[Kind, Failure]:
    """A stale listing in a run of a plan of 13 or 40 entries, of which it needs three."""
    with real_runs(tmp_path, "stale-list") as opened:
        for _ in range(20):
            found = broken_in(opened.again(HIDDEN, time.monotonic() + 60).history, HIDDEN, load_profile("http"))
            for kind, failure in found.items():
                if kind[:3] == STALE:
                    return kind, failure
    pytest.fail("20 runs showed no stale listing")


def replayed(plan: Path, times: int) -> tuple[int, str]:
    said = io.StringIO()
    return run_again(plan, Wanted(times=times), Console(file=said, width=200)), said.getvalue()
