"""Correct servers of odd shape, in several languages, are not accused; one with a subtle fault is."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.faults import Fault, FaultKind, Site, Step
from marker_sim.history import History
from marker_sim.judges import Finding, judge
from marker_sim.names import MarkerDirectory
from marker_sim.plan import MALFORMED, Op, Plan
from marker_sim.unusual_names import REFUSED
from properties import tools
from properties.faces.judges import load_profile
from properties.faces.outcome import ONE_REFUSED
from properties.faces.targets import CampaignRequest, HttpTarget, ServerOptions
from properties.faces.worlds import OF_PLANS, DirectoryReader, Recorder, kernel, run_reader
from properties.volume import CI_ONLY, volume
from scenarios.correct_servers.starts import HERE, SERVERS, build_go, missing, start
from scenarios.stored_plans import caught
from scenarios.test_http import campaign

PLANS = volume(8, nightly=40)
ON_S3 = volume(8, quick=1, nightly=40)
LATE_S = 0.6
BUDGET_S = 240.0  # That no campaign of so many plans comes near to.
QUICK = ("go-hex-files", "node-journal")  # They start at once, so that the second plan surely has its turn.
# By default one on S3, where a plan takes as long as three on a disk. The others differ in how they store, which CI
# sees; a plan for the one whose directories have owners is below.
BY_DEFAULT = ("python-one-key",)
HASTY = """		if len(batch) < full {
			files, _ := read(o.dir)
			for at := range batch {
				known := false
				for _, text := range files {
					known = known || strings.Contains("\\n"+text, "\\n"+batch[at].name+"\\n")
				}
				batch[at].back <- answer{!known, nil}
				batch[at].back = make(chan answer, 1)
			}
			time.Sleep(wait) // With the next turn.
		}
"""


def asked(tmp_path: Path, command: str, runs: int | None, reader: str = "", storage: str = "local") -> CampaignRequest:
    return CampaignRequest(
        target=HttpTarget(),
        modes=("timeline",),
        storages=(storage,),
        budget_s=BUDGET_S,
        runs=runs,
        shrinking=False,
        seed=1,
        profile=load_profile("http"),
        server=ServerOptions(start=command, reader=reader),
        report=tmp_path / "report",
    )


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in BY_DEFAULT else [CI_ONLY]) for name in sorted(SERVERS)]
)
def test_a_correct_server_of_odd_shape_is_not_accused(tmp_path: Path, name: str) -> None:
    if lacks := missing(name):
        pytest.skip(lacks)
    command, reader = start(name, tmp_path)
    storage = SERVERS[name].storage
    done = campaign(asked(tmp_path, command, PLANS if storage == "local" else ON_S3, reader, storage))
    assert [(failure.guarantee, failure.message) for failure in done.failures] == []
    assert not done.trouble
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert {name for name in ("G1", "G4", "G6") if rows[name].judged == 0} == set()
    if name in QUICK:
        met = done.statistics.reached[OF_PLANS + ONE_REFUSED]
        assert met, "storage was refused below one directory, whatever files are called"


MINE, THEIRS = 0, 1  # Directories, as the first server sees them.
TWO_OWNERS = Plan(
    mode="timeline",
    storage="local",
    num_threads=2,
    interval_ms=50,
    directories=("t/.hoodie/.temp/001", "u/.hoodie/.temp/001"),
    ops=(
        Op(actor="a", kind="create", name="p/a.marker.CREATE", directory=MINE),
        Op(actor="b", kind="create", name="p/b.marker.CREATE", directory=THEIRS, server=1, after_ms=100),
        *(Op(actor="b", kind=kind, directory=THEIRS) for kind in ("list", "list-data", "list-log", "exists")),
        Op(actor="b", kind="create", name="p/c.marker.CREATE", directory=THEIRS),
        *(Op(actor="b", kind="hostile", name=name, directory=MINE, server=1) for name in REFUSED),
        *(Op(actor="b", kind="hostile", name="x.marker.CREATE", spelled=form, server=1) for form in MALFORMED),
        Op(actor="b", kind="delete", directory=THEIRS),
        Op(actor="b", kind="create", name="p/d.marker.CREATE", directory=MINE),
    ),
    faults=(Fault.of(FaultKind.SECOND_SERVER, "server", Step(1), for_ms=3_000),),
)
ADMIT = "    markers.admit(directory)\n"
STORES_IT = """    try:
        markers.admit(directory)
    except Elsewhere:
        if markers.create(directory, name):
            raise
"""
HELD, CLOSED = "            if directory in self._held:\n", "                os.close(lock)\n"
NEVER_MINE = """            if self._held.get(directory) == -1:
                raise Elsewhere(directory)
"""


def owned(
    tmp_path: Path, *changes: tuple[str, str, str], plan: Plan = TWO_OWNERS
) -> tuple[History, dict[str, Finding]]:
    """A plan for servers that own directories, with these changes of their files: name, what is there, what becomes."""
    copied = tmp_path / "scenarios" / "correct_servers"
    copied.mkdir(parents=True)
    for name in ("owned.py", "plain_http.py"):
        shutil.copy(HERE / name, copied)
    for name, before, after in changes:
        text = (copied / name).read_text(encoding="utf-8")
        assert text.count(before) == 1
        (copied / name).write_text(text.replace(before, after), encoding="utf-8")
    start = f"{shlex.join([sys.executable, '-S', str(copied / 'owned.py')])} {{port}} {{storage}}"
    request = CampaignRequest(
        target=HttpTarget(), modes=("timeline",), storages=("local",), seed=1, profile=load_profile("http"),
        budget_s=600.0, server=ServerOptions(start=start),
        report=tmp_path / "report",
    )  # fmt: skip
    with request.target.real_runs(request, lambda line: None) as opened:
        history = opened.again(plan, time.monotonic() + 60, False, True).history
    return history, {finding.guarantee: finding for finding in judge(history)}


def test_a_server_that_owns_its_directories_may_say_so_of_whatever_another_one_is_asked(tmp_path: Path) -> None:
    history, findings = owned(tmp_path)
    elsewhere = [event.operation for event in history.events if (event.error or "").startswith("503")]
    assert {"create", "list", "list-data", "list-log", "exists", "hostile", "delete"} <= set(elsewhere)
    assert elsewhere.count("hostile") >= len(REFUSED)
    assert [breach for finding in findings.values() for breach in finding.breaches] == []
    assert all(findings[name].judged for name in ("G1", "G3", "G4", "G6"))


def test_a_server_that_keeps_what_it_sent_elsewhere_is_caught(tmp_path: Path) -> None:
    _, findings = owned(tmp_path, ("plain_http.py", ADMIT, STORES_IT))
    assert findings["G4"].breaches or findings["G12"].breaches


IN_ITS_LIFE = "        self._one = Lock()\n"
AT_ITS_START = f'{IN_ITS_LIFE}        Path(root, f"started-{{os.getpid()}}").write_text("yes")\n'


def test_a_full_disk_meets_no_server_that_is_still_starting(tmp_path: Path) -> None:
    ops = tuple(Op(actor="a", kind="create", name=f"p/{n}.marker.CREATE", directory=MINE) for n in range(3))
    faults = (
        Fault.of(FaultKind.DISK_FULL, "server", Step(2), for_ms=1_500),
        Fault.of(FaultKind.KILL, "server", Site("server: reply", 2), restart_ms=0),
    )
    history, findings = owned(
        tmp_path, ("owned.py", IN_ITS_LIFE, AT_ITS_START), plan=replace(TWO_OWNERS, ops=ops, faults=faults)
    )
    word = [event.operation for event in history.events if event.kind == "fault"]
    assert word.index("disk-full") < word.index("restart") < len(word) - 1 - word[::-1].index("disk-full")
    assert [breach for finding in findings.values() for breach in finding.breaches] == []


ASIDE = '{directory}.deleting"'


@pytest.mark.parametrize("onto", [False, True], ids=["aside", "onto-another"])
def test_a_server_that_deletes_by_a_rename_is_caught_where_that_fills_a_directory_of_a_request(
    tmp_path: Path, onto: bool
) -> None:
    asked = (("create", MINE), ("create", THEIRS), ("delete", MINE), ("create", MINE))
    ops = tuple(
        Op(actor="a", kind=kind, name=f"p/{n}.marker.CREATE" * (kind == "create"), directory=directory)
        for n, (kind, directory) in enumerate(asked)
    )
    plan = replace(TWO_OWNERS, faults=(), ops=ops, directories=("t/.hoodie/.temp/001", "t/.hoodie/.temp/002"))
    _, findings = owned(tmp_path, *[("owned.py", ASIDE, '{directory[:-1]}2"')] * onto, plan=plan)
    accused = {name for name, finding in findings.items() if finding.breaches}
    assert ("G4" in accused) if onto else not accused
    assert all(findings[name].judged for name in ("G4", "G8", "G9"))


def test_a_correct_server_whose_storage_calls_the_kit_answers_late_is_not_accused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    receive: Callable[[int], object] = kernel.receive

    def late(listener: int) -> object:
        time.sleep(LATE_S)  # As a thread of the kit that waits for a processor.
        return receive(listener)

    monkeypatch.setattr(kernel, "receive", late)
    ops = tuple(Op(actor=f"a{n}", kind="create", name=f"p/{n}.marker.CREATE", after_ms=500) for n in range(9))
    # The bound is 20 times what creates took before the first fault, at least 10 s.
    faults = (Fault.of(FaultKind.PAUSE, "server", Step(1), for_ms=100),)
    history, findings = owned(tmp_path, plan=replace(TWO_OWNERS, ops=ops, faults=faults))
    asked = {event.index: event.time_ns for event in history.events if event.kind == "invoke"}
    ends = [event for event in history.events if event.kind in ("ok", "info") and event.caused_by in asked]
    waited_s = [(event.time_ns - asked[event.caused_by or 0]) / 1e9 for event in ends]
    assert max(waited_s) > history.header.answer_bound_ms / 1e3, "an answer was late"
    assert [breach for finding in findings.values() for breach in finding.breaches] == []


def test_a_server_that_leaves_a_dead_one_s_directories_alone_for_ever_is_caught(tmp_path: Path) -> None:
    _, findings = owned(
        tmp_path,
        ("owned.py", HELD, NEVER_MINE + HELD),
        ("owned.py", CLOSED, f"{CLOSED}                self._held[directory] = -1\n"),
    )
    assert findings["G6"].breaches


REFUSED_LATER = '                raise Refused("not now")\n'
EXISTS, DELETE = '        case "GET", "/dir/exists":\n', '        case "POST", "/dir/delete":\n'


@pytest.mark.parametrize(("guarantee", "route"), [("G11", EXISTS), ("G10", DELETE)], ids=["exists", "delete"])
def test_a_server_that_always_refuses_what_it_should_do_is_caught(tmp_path: Path, guarantee: str, route: str) -> None:
    asked = (("create", "p/a.marker.CREATE"), ("exists", ""), ("delete", ""), ("create", "p/b.marker.CREATE"))
    plan = replace(TWO_OWNERS, faults=(), ops=tuple(Op(actor="a", kind=kind, name=name) for kind, name in asked))
    refuses = ("plain_http.py", route, f"{route}            if markers.names(directory):\n{REFUSED_LATER}")
    _, findings = owned(tmp_path, refuses, plan=plan)
    assert {name for name, finding in findings.items() if finding.breaches} == {guarantee}


def test_a_listing_that_is_compressed_for_a_client_that_does_not_accept_it_is_caught(tmp_path: Path) -> None:
    listed = (Op(actor="a", kind="list"), Op(actor="a", kind="list", form="last-on-connection"))
    plan = replace(TWO_OWNERS, faults=(), ops=(Op(actor="a", kind="create", name="p/a.marker.CREATE"), *listed))
    sends = "            self.send_response(status)\n"
    packs = """            if isinstance(value, list):
                body = __import__("gzip").compress(body)
            self.send_response(status)
            if isinstance(value, list):
                self.send_header("Content-Encoding", "gzip")
"""
    history, findings = owned(tmp_path, ("plain_http.py", sends, packs), plan=plan)
    assert {name for name, finding in findings.items() if finding.breaches} == {"G11"}
    ends = [event for event in history.events if event.operation == "list" and event.process in ("a", "a.1")]
    assert [event.kind for event in ends] == ["invoke", "ok", "invoke", "info"]
    assert "a compressed body, which the client did not accept" in (ends[-1].error or "")


@tools.needs(tools.program("go"))
def test_a_server_that_answers_batches_that_are_not_full_before_it_writes_them_is_caught(tmp_path: Path) -> None:
    text = (HERE / "bysize" / "main.go").read_text(encoding="utf-8")
    anchor = "\t\to.store(batch)\n"
    assert text.count(anchor) == 1
    source = tmp_path / "main.go"
    source.write_text(text.replace(anchor, HASTY + anchor), encoding="utf-8")
    build_go(source, tmp_path / "hasty")
    start = f"{shlex.quote(str(tmp_path / 'hasty'))} -port {{port}} -dir {{storage}}"
    found = caught("answers-before-it-writes", "G1", asked(tmp_path, start, None))
    assert found is not None and found.evidence


def test_a_reader_that_waits_for_a_lock_of_a_stopped_server_costs_that_look_and_nothing_else(tmp_path: Path) -> None:
    place = MarkerDirectory("t", "001")
    (tmp_path / place.path).mkdir(parents=True)

    def reader(command: str) -> DirectoryReader:
        def names(place: MarkerDirectory, timeout_s: float) -> list[str]:
            return run_reader(command, str(tmp_path / place.path), {}, timeout_s)

        return DirectoryReader(Recorder(), lambda prefix: {}, in_order=True, names=names)

    patient = reader("""sh -c 'test ! -e "$0/locked" || exec sleep 60; echo a.marker.CREATE' {dir}""")
    assert patient.look_at_stopped(place)
    (tmp_path / place.path / "locked").touch()
    began = time.monotonic()
    assert not patient.look_at_stopped(place)
    assert time.monotonic() - began < 50, "it did not wait for the reader"
    failing = reader("sh -c 'echo database is locked >&2; exit 1'")
    assert not failing.look_at_stopped(place)
    failing.look_at_dead(place)
    assert "database is locked" in failing.unread
