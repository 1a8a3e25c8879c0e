"""`replay --script`: violations that Python alone shows without the kit, and correct servers that hold up to it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from marker_sim.faults import Call, Fault, FaultKind, Site, Step
from marker_sim.plan import SPELLINGS, Op, Plan, write_plan
from marker_sim.targets import hudi
from properties.faces.campaign import StoredPlan
from properties.faces.cli import main
from properties.faces.report import issue_text, server_script
from properties.faces.targets import ServerOptions
from properties.volume import CI_ONLY, volume
from scenarios.correct_servers import starts as correct_servers
from scenarios.faulty_servers import starts as faulty_servers
from scenarios.findings.stored_finding import read_findings
from scenarios.plain_shell import run_script, s3_store, settings_of_hudi
from scenarios.test_http import START
from scenarios.test_http_s3 import START as START_S3

NAMES = tuple(f"p/f{number}_0-0-0_001.parquet.marker.CREATE" for number in range(4))
SOURCE = "docs/guarantees.md, the marker store"
IN_PLACE = f"{START} --broken torn-in-place"
HELD_TRIES = volume(2, quick=1)  # As often a correct server is tried.


def create(name: str, **more: int) -> Op:
    return Op(actor="a", kind="create", name=name, **more)  # type: ignore[arg-type]


def plan(*ops: Op, faults: tuple[Fault, ...] = (), threads: int = 1, storage: str = "local", tables: int = 1) -> Plan:
    places = tuple(f"t{number}/.hoodie/.temp/001" for number in range(tables))
    return Plan(storage=storage, num_threads=threads, ops=ops, faults=faults, directories=places)


def told(guarantee: str, made: Plan, start: str, sut: str = "http", version: str = "") -> StoredPlan:
    server = ServerOptions(start=start)
    return StoredPlan(guarantee=guarantee, plan=made, sut=sut, server=server, source=SOURCE, version=version)


def run(script: str, folder: Path, **settings: str) -> tuple[int, str]:
    """Exit code and output of a script, where neither the kit nor its environment can be found."""
    done = run_script(script, folder, 300, **settings)
    assert "Traceback" not in done.errors, done.errors
    assert not done.left, "a script ends what it started"
    return done.code, "\n".join((*done.lines, *done.errors.splitlines(), ""))


def killed(at: int) -> Fault:
    return Fault.of(FaultKind.KILL, "server", Site("server: reply", at))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A plan that breaks a guarantee at a server broken in one way, and what the script shows of it."""

    guarantee: str
    made: Plan
    shows: str


CASES = {
    "forgets-after-restart": Case(
        guarantee="G5",
        made=plan(*(create(name) for name in (*NAMES[:2], NAMES[0])), faults=(killed(2),)),
        shows="answered true twice",
    ),
    "joins-after-restart": Case(
        guarantee="G4",
        made=plan(*(create(name) for name in NAMES), faults=(killed(2),)),
        shows="001.parquet.marker.CREATE,p/f1_0-0-0_001.parquet.marker.CREATEp/f2",
    ),
    "stores-nothing": Case(
        guarantee="G1", made=plan(create(NAMES[0])), shows="answered true, and is not stored at that moment"
    ),
    "exists-while-flushing": Case(
        guarantee="G2",
        made=replace(plan(create(NAMES[0], copies=4, apart_ms=60), threads=2), interval_ms=600),
        shows="answered false, and is not stored at that moment",
    ),
    "stale-list": Case(
        guarantee="G11",
        made=plan(Op(actor="a", kind="list"), create(NAMES[0]), Op(actor="a", kind="list")),
        shows="was answered, and list lacks it",
    ),
    "memory-only": Case(
        guarantee="G3",
        made=plan(
            create(NAMES[0]), create(NAMES[1], server=1), create(NAMES[2]),
            faults=(Fault.of(FaultKind.SECOND_SERVER, "server", Site("server: reply", 1), for_ms=600),),
        ),
        shows="a second server on the same storage",
    ),
    "swallows-failure": Case(
        guarantee="G1",
        made=plan(
            create(NAMES[0]), create(f"p/{'x' * 180}{NAMES[1]}", after_ms=10),
            faults=(Fault.of(FaultKind.DISK_FULL, "server", Site("server: reply", 1), for_ms=300),),
        ),
        shows="# a full disk",
    ),
    "dies-of-a-broken-pipe": Case(
        guarantee="G6",
        made=plan(create(NAMES[0]), create(NAMES[1]), faults=(Fault.of(FaultKind.REPLY_LOST, "a", Step(1)),)),
        shows="a server ended by itself",
    ),
}  # fmt: skip


# Of those that are left out another script or a campaign shows the same guarantee by default.
BY_DEFAULT = ("forgets-after-restart", "stores-nothing", "stale-list", "dies-of-a-broken-pipe")


@pytest.mark.parametrize(
    "broken", [pytest.param(broken, marks=[] if broken in BY_DEFAULT else [CI_ONLY]) for broken in CASES]
)
def test_a_script_shows_a_broken_server_and_acquits_the_correct_one(tmp_path: Path, broken: str) -> None:
    case = CASES[broken]
    script = server_script(told(case.guarantee, case.made, f"{START} --broken {broken}"))
    code, said = run(script, tmp_path)
    assert code == 1 and f": {case.guarantee} " in said.splitlines()[-1], said
    assert said.splitlines()[-1].startswith("VIOLATED in ") and case.shows in said
    code, said = run(script, tmp_path, START=START, TRIES=str(HELD_TRIES))
    assert (code, said.splitlines()[-1]) == (0, f"held in {HELD_TRIES} tries"), said


def test_names_that_only_unicode_tells_apart_reach_the_server_byte_by_byte(tmp_path: Path) -> None:
    names = ("p/\u00e0", "p/a\u0300", "p/\U0001f600", "p/quo\"te's", "p/back\\slash", "p/per%41cent+a b")
    made = plan(*(create(f"{name}.parquet.marker.CREATE") for name in names))
    script = server_script(told("G2", made, faulty_servers.command("nfc-compared", Path())))
    code, said = run(script, tmp_path)
    assert code == 1 and "was answered false, and is not stored at that moment" in said, said
    assert run(script, tmp_path, START=faulty_servers.command("correct-python", Path()))[0] == 0


def test_a_name_with_a_line_break_is_one_name(tmp_path: Path) -> None:
    made = plan(create("p/a\nb.parquet.marker.CREATE"), create("p/a\tb.parquet.marker.CREATE"))
    code, said = run(server_script(told("G4", made, f"{START} --broken accepts-anything")), tmp_path)
    assert code == 1 and "p/a\\nb.parquet.marker.CREATE was answered true, and is not stored" in said, said
    assert "$ create $'p/a\\tb.parquet.marker.CREATE' -> true" in said and "a\\tb.parquet.marker.CREATE was" not in said
    code, said = run(server_script(told("G4", made, START)), tmp_path)
    assert code == 0 and "$ create $'p/a\\nb.parquet.marker.CREATE' -> HTTP 400" in said, said


@CI_ONLY
def test_an_empty_name_is_one_in_a_listing_and_none_in_a_file(tmp_path: Path) -> None:
    script = server_script(told("G4", plan(create(""), create(NAMES[0])), f"{START} --broken accepts-anything"))
    code, said = run(script, tmp_path)
    broken = re.findall(r"^# broken: (.*)", said, re.MULTILINE)
    assert code == 1 and broken and all("the empty name was answered" in line for line in broken), said
    assert "$ create '' -> true" in said
    assert run(script, tmp_path, START=START)[0] == 0, "it is refused"


def test_a_hostile_name_may_be_taken_and_is_asked_for(tmp_path: Path) -> None:
    odd = Op(actor="a", kind="hostile", name="p/a\rb.parquet.marker.CREATE")
    script = server_script(told("G4", plan(odd, create(NAMES[0]), Op(actor="a", kind="list")), START))
    code, said = run(script, tmp_path, START=f"{START} --broken accepts-anything")
    assert code == 0 and "$ hostile $'p/a\\rb.parquet.marker.CREATE' -> true" in said, said


def test_a_directory_is_written_as_the_plan_has_it(tmp_path: Path) -> None:
    def asked(*forms: str) -> Plan:
        return plan(*(Op(actor="a", kind="hostile", name=NAMES[0], spelled=form) for form in forms))

    code, said = run(server_script(told("G12", asked("outside-temp", "outside-hoodie", "climbing"), START)), tmp_path)
    assert code == 0 and said.count("HTTP 400") == 3 and "in t0/.hoodie/001 -> HTTP 400" in said, said
    assert run(server_script(told("G12", asked(""), START)), tmp_path)[0] == 1, "written as usual it is taken"
    made = plan(Op(actor="a", kind="hostile", name="p/a\udcffb.parquet.marker.CREATE"))
    assert run(server_script(told("G12", made, START)), tmp_path)[0] == 0, "as text it would be taken"
    made = plan(*(Op(actor="a", kind="create", name=NAMES[0], spelled=form) for form in SPELLINGS))
    code, said = run(server_script(told("G1", made, f"{START} --broken stores-nothing")), tmp_path)
    assert code == 1 and "in t0/.hoodie/.temp/001/ -> " in said and "in t0/.hoodie//.temp/001 -> " in said, said
    assert run(server_script(told("G1", made, START)), tmp_path)[0] == 0


@CI_ONLY
def test_a_server_that_is_killed_within_a_rewrite_has_lost_what_it_answered(tmp_path: Path) -> None:
    torn = Fault.of(FaultKind.TORN_WRITE, "server", Site("server: batch file put", 1))
    script = server_script(
        told("G3", plan(*(create(name) for name in NAMES), faults=(torn,)), f"{START} --broken torn-in-place")
    )
    code, said = run(script, tmp_path)
    assert code == 1 and "G3 acked-marker-survives: " in said.splitlines()[-1], said
    assert "$ kill -9 $SERVER # t0/.hoodie/.temp/001/MARKERS0" in said and " within its write" in said
    code, said = run(script, tmp_path, START=START, TRIES="1")
    assert code == 0 and " within its write" in said, (
        "a server that replaces its files dies in one that has no name yet"
    )


@pytest.mark.parametrize(
    ("fault", "shows"),
    [
        pytest.param(
            Fault.of(FaultKind.KILL, "server", Call("MARKERS0", ("write",), 2)),
            "# t0/.hoodie/.temp/001/MARKERS0",
            marks=CI_ONLY,
        ),
        (Fault.of(FaultKind.KILL, "server", Call("MARKERS", ("put",), 3, "after")), " after its "),
        pytest.param(
            Fault.of(FaultKind.IO_ERROR, "server", Call("MARKERS0", ("write",), 2)),
            "fails with Input/output error",
            marks=CI_ONLY,
        ),
        (
            Fault.of(FaultKind.IO_ERROR, "server", Call("MARKERS0", ("cut",), 1), applied=True),
            "# openat of t0/.hoodie/.temp/001/MARKERS0 fails with Input/output error",
        ),
        pytest.param(
            Fault.of(FaultKind.DISK_FULL, "server", Call("MARKERS0", ("write",), 2), calls=2),
            "fails with No space left on device",
            marks=CI_ONLY,
        ),
        (Fault.of(FaultKind.SLOW_STORAGE, "server", Call("MARKERS0", ("write",), 2), late_ms=300), "is 300 ms late"),
    ],
)
def test_a_fault_meets_its_call_in_a_script(tmp_path: Path, fault: Fault, shows: str) -> None:
    made = plan(*(create(name) for name in NAMES), faults=(fault,))
    _, said = run(server_script(told("G4", made, IN_PLACE)), tmp_path, TRIES="1")
    assert shows in said, said


def test_a_script_whose_server_makes_no_such_call_has_no_verdict(tmp_path: Path) -> None:
    never = Fault.of(FaultKind.KILL, "server", Call("MARKERS7", ("write",)))
    code, said = run(server_script(told("G4", plan(create(NAMES[0]), faults=(never,)), START)), tmp_path, TRIES="1")
    assert code == 3 and "CANNOT: the server made no call that a fault was meant for" in said, said


def test_a_file_that_a_living_server_is_writing_is_not_looked_at_for_an_answer(tmp_path: Path) -> None:
    made = plan(create("p/f{copy}_0-0-0_001.parquet.marker.CREATE", copies=40, apart_ms=20))
    script = server_script(told("G1", made, f"{START} --broken torn-in-place"))
    code, said = run(script, tmp_path, TRIES=str(HELD_TRIES))
    assert (code, said.splitlines()[-1]) == (0, f"held in {HELD_TRIES} tries"), said


@CI_ONLY
def test_no_client_lets_the_server_go_on_while_another_looks(tmp_path: Path) -> None:
    many = (
        create(f"p/f{{copy}}-{number}_0-0-0_001.parquet.marker.CREATE", copies=6, apart_ms=15) for number in range(10)
    )
    script = server_script(told("G1", plan(*many, threads=3), f"{START} --broken torn-in-place"))
    before = "def marker_files(folder):\n"
    assert before in script
    slow = script.replace(before, "def marker_files(folder):\n    time.sleep(0.1)\n", 1)  # A look is long.
    code, said = run(slow, tmp_path, TRIES="1")
    assert (code, said.splitlines()[-1]) == (0, "held in 1 tries"), said


def test_the_copy_of_a_request_leaves_the_server_running(tmp_path: Path) -> None:
    twice = Fault.of(FaultKind.DUPLICATED, "a", Step(1), late_ms=300)
    made = plan(create(NAMES[0]), Op(actor="a", kind="list", after_ms=800), create(NAMES[1]), faults=(twice,))
    code, said = run(server_script(told("G1", made, START)), tmp_path, TRIES="1")
    assert code == 0 and "no answer" not in said, said


def test_a_step_that_cannot_be_done_is_no_verdict(tmp_path: Path) -> None:
    code, said = run(server_script(told("G1", plan(create(NAMES[0])), START)), tmp_path, START="false {port}")
    assert code == 3 and "CANNOT: the server did not answer" in said
    needy = told("G1", plan(create(NAMES[0])), "", "hudi:1.0.2")
    assert run(server_script(needy), tmp_path) == (3, "set BUNDLE to the Hudi bundle jar\n")


def test_a_script_that_fails_itself_has_no_verdict(tmp_path: Path) -> None:
    script = server_script(told("G1", plan(create(NAMES[0])), START))
    whole, client = "    def whole(self):\n", "    def request(self, operation"
    assert whole in script and client in script
    done = run_script(script.replace(whole, f"{whole}        raise KeyError(1)\n", 1), tmp_path)
    assert done.code == 3 and "KeyError" in done.errors
    crowd = server_script(told("G1", plan(create("p/f{copy}.marker.CREATE", copies=2)), START))
    done = run_script(
        crowd.replace("def client_0(do):", "def client_0(do):\n    raise KeyError(1)", 1), tmp_path, TRIES="1"
    )
    assert done.code == 3 and "CANNOT: KeyError(1)" in done.lines, "a client of its own is a thread"


@pytest.fixture(scope="module")
def lake() -> Iterator[str]:
    with s3_store() as endpoint:
        yield endpoint


@pytest.mark.parametrize("read", ["list", pytest.param("get", marks=CI_ONLY)])
def test_a_script_stops_what_a_server_reads(tmp_path: Path, read: str) -> None:
    path = r"^t0/\.hoodie/\.temp/001/?$" if read == "list" else "MARKERS0$"
    fails = Fault.of(FaultKind.IO_ERROR, "server", Call(path, (read,), 5 if read == "list" else 1))
    start = (
        faulty_servers.command("correct-python", Path())
        if read == "list"
        else correct_servers.start("python-crash-only", tmp_path)[0]
    )
    script = server_script(told("G3", plan(*(create(name) for name in NAMES[:3]), faults=(fails,)), start))
    code, said = run(script, tmp_path, TRIES="1")
    assert code == 0 and "001" in said and "fails with Input/output error" in said, said
    if read == "list":
        code, said = run(script, tmp_path, START=faulty_servers.command("listing-error-is-empty", Path()), TRIES="1")
        assert code == 1, said


@CI_ONLY
def test_what_was_found_on_s3_is_shown_on_any_s3(tmp_path: Path, lake: str) -> None:
    made = plan(*(create(name) for name in NAMES[:3]), faults=(killed(2),), storage="s3")
    script = server_script(told("G4", made, f"{START_S3} --broken joins-after-restart"))
    code, said = run(script, tmp_path, ENDPOINT=lake)
    assert code == 1 and "CREATE,p/f1_0-0-0_001.parquet.marker.CREATEp/f2" in said, said
    assert run(script, tmp_path, ENDPOINT=lake, START=START_S3)[0] == 0


def test_a_script_refuses_a_request_in_front_of_any_s3(tmp_path: Path, lake: str) -> None:
    refused = Fault.of(FaultKind.SERVER_ERROR, "server", Call("MARKERS0", ("put",)))
    script = server_script(told("G1", plan(create(NAMES[0]), faults=(refused,), storage="s3"), START_S3))
    broken = f"{START_S3} --broken swallows-failure"
    code, said = run(script, tmp_path, ENDPOINT=lake, START=broken, TRIES="1")
    assert code == 1 and "# S3 answers the put of t0/.hoodie/.temp/001/MARKERS0 with 500" in said, said
    code, said = run(script, tmp_path, ENDPOINT=lake, TRIES="1")
    assert code == 0 and "with 500" in said, said
    assert run(script, tmp_path)[0] == 3, "without an S3 nothing can be refused"


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (
            plan(
                create(NAMES[0]),
                faults=(Fault.of(FaultKind.TIMEOUT_APPLIED, "server", Call("", ("put",))),),
                storage="s3",
            ),
            "does not see the n-th call of a server to its storage (timeout-applied of server)",
        ),
    ],
)  # fmt: skip
def test_what_a_script_cannot_do_is_said_in_a_sentence_and_not_written(made: Plan, why: str) -> None:
    failure = told("G1", made, START)
    with pytest.raises(Exception, match=re.escape(why)):
        server_script(failure)
    assert why in issue_text(failure), "the text for an issue tracker is there without a script"


def test_a_report_is_handed_over_as_scripts_and_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, start = tmp_path / "report", f"{START} --broken stores-nothing"
    report.mkdir()
    failure = {
        "guarantee": "G1", "mode": "timeline", "storage": "local", "cause": "", "message": "it is not", "evidence": [],
        "confirmed": "", "entries_before": 0, "large": "", "plan": "plan.json", "replay": "", "story": 0,
    }  # fmt: skip
    verdict = {"schema": 1, "verdict": "violated", "sut": "http", "guarantees": [], "failures": [failure]}
    verdict["server"] = ServerOptions(start=start).to_dict()
    (report / "verdict.json").write_text(json.dumps(verdict), encoding="utf-8")
    write_plan(CASES["stores-nothing"].made, report / "plan.json")
    plain = main(["replay", str(report / "plan.json"), "--script"])
    script = capsys.readouterr().out
    assert plain == 0 and script.startswith('#!/usr/bin/env python3\nr"""\nG') and ascii(start) in script
    code, said = run(script, tmp_path, TRIES="1")
    assert code == 1 and said.splitlines()[-1].startswith("VIOLATED in "), said
    assert main(["replay", str(report / "plan.json"), "--markdown", str(tmp_path / "issue.md")]) == 0
    text = (tmp_path / "issue.md").read_text(encoding="utf-8")
    assert text.startswith("# A create is answered") and SOURCE in text and "```python\n#!/usr/bin/env python3" in text
    folder = tmp_path / "all"
    assert main(["replay", str(report), "--script", str(folder), "--all"]) in (0, 2)
    written = [folder] if folder.is_file() else sorted(folder.iterdir())
    assert written and all(os.access(file, os.X_OK) for file in written)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--script", "--markdown"], "--script and --markdown was given"),
        (["--script", "--times", "3"], "--times was given"),
        (["out.sh"], "add one"),
    ],
)
def test_words_that_do_not_go_together_are_wrong_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(["replay", str(tmp_path), *words]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("version", "launcher"), [("0.15.1", hudi.STORAGE_LAUNCHER), ("1.0.2", hudi.LAUNCHER)])
def test_a_bundle_that_was_built_is_started_as_its_version_is(version: str, launcher: str) -> None:
    made = replace(plan(create(NAMES[0])), storage="s3")
    assert f"{{folder}}/{launcher}" in server_script(told("G1", made, "", "hudi:/built/bundle.jar", version))


@pytest.mark.jvm
def test_a_script_shows_the_glued_names_of_hudi_1_0_2(tmp_path: Path) -> None:
    stored = next(each for each in read_findings() if each.name == "names-glued-together-after-a-restart")
    code, said = run(server_script(stored.told), tmp_path, **settings_of_hudi("1.0.2"))
    assert code == stored.ran[0].code == 1 and re.search(r"CREATE,[^ $]*CREATE", said), said
