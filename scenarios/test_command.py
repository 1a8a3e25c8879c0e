"""Programs in other languages (docs/command.md): correct ones hold, faulty ones are caught, the rules are kept."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.pieces import NumberedRun, PieceResult, SearchSettings
from marker_sim.campaign.runs import comparable, compare_modes, execute, reusing
from marker_sim.cli.app import main
from marker_sim.command import messages, session
from marker_sim.command import programs as running
from marker_sim.command.programs import ProgramPool, pool_of
from marker_sim.errors import HarnessError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.loading import load_system
from marker_sim.outcome.result import Campaign
from marker_sim.search.swarm import make_plan
from marker_sim.search.writes import make_write_plan
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest
from properties.volume import CI_ONLY, volume
from scenarios.command.exchange import NAME, lines_of, perform
from scenarios.command.programs import command_of, lacks

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "command.md"
SOURCES = ROOT / "scenarios" / "command"
PROFILE = load_profile("python")
PLACES = tuple((mode, storage) for mode in ("direct", "timeline") for storage in ("s3", "local"))
SEEDS = volume(10, quick=4)  # One of each mode and storage.
FAULTS = {"java": ("--answers-first", "G1"), "go": ("-forgets", "G3"), "node": ("--believes-failures", "G1")}
JAVA_WRITES = ("--file-first", "G13")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The command of each example that can be built here, by its language."""
    out = tmp_path_factory.mktemp("programs")
    return {language: command_of(language, out) for language in FAULTS if not lacks(language)}


@pytest.fixture(params=sorted(FAULTS))
def language(request: pytest.FixtureRequest, programs: dict[str, str]) -> str:
    """Each that is installed."""
    name: str = request.param
    if name not in programs:
        pytest.skip(lacks(name))
    return name


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    """Whatever a test started is gone."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []


def campaign(command: str, **more: object) -> Campaign:
    asked: dict[str, object] = {
        "target": parse_target(f"command:{command}"),
        "modes": ("direct", "timeline"),
        "storages": ("s3", "local"),
        "seed": 1,
        "profile": PROFILE,
        "runs": 40,
        "canaries": False,
    }
    return run_campaign(CampaignRequest(**(asked | more)), lambda line: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "language", ["go", pytest.param("java", marks=CI_ONLY), pytest.param("node", marks=CI_ONLY)], indirect=True
)
def test_a_correct_program_is_not_accused_of_operations_and_of_writes(programs: dict[str, str], language: str) -> None:
    system = load_system(f"command:{programs[language]}")
    assert system.outside is not None
    seen = PieceResult()
    settings = SearchSettings(places=PLACES, seed=0, guarantees=None, profile=PROFILE)
    try:
        for seed in range(SEEDS):
            mode, storage = PLACES[seed % len(PLACES)]
            for make in (make_plan, make_write_plan):
                plan = make(seed, mode, storage)
                pair = compare_modes(plan, system)[:2] if comparable(plan, system) else None
                run = NumberedRun(seed, plan, *execute(plan, system), pair=pair, again=not seed)
                seen.take(run, settings, system)
    finally:
        system.outside.close()
    assert {kind: broken.breach.message for kind, broken in seen.found.items()} == {}
    assert seen.statistics.runs == 2 * SEEDS and not seen.unsupported
    assert not seen.statistics.differences
    rows = seen.statistics.rows(PROFILE)
    assert {"G1", "G3", "G4", "G6", "G13", "G14", "G15", "G17", "G21"} <= {row.id for row in rows if row.judged}


@pytest.mark.parametrize(
    "language", ["go", *(pytest.param(name, marks=CI_ONLY) for name in ("java", "node"))], indirect=True
)
def test_a_faulty_program_is_caught_its_plan_is_small_and_replay_confirms_it(
    programs: dict[str, str],
    language: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flag, guarantee = FAULTS[language]
    monkeypatch.chdir(tmp_path)
    command = f"{programs[language]} {flag}"
    words = ["verify", "--sut", "command", "--start", command, "--guarantees", guarantee, "--mode", "timeline"]
    assert main((*words, "--storage", "s3", "--runs", "80", "--seed", "1", "--stop-at-first", "--jobs", "1")) == 1
    shown = capsys.readouterr().out
    assert int(re.search(r"(\d+) entries, shrunk from \d+", shown)[1]) <= 6, shown  # type: ignore[index]
    assert main(("replay", "marker-sim-report")) == 1
    assert f"STILL VIOLATED: {guarantee}" in capsys.readouterr().out
    assert main(("replay", "marker-sim-report", "--sut", f"command:{programs[language]}")) == 0
    assert f"no longer breaks {guarantee}" in capsys.readouterr().out
    for each in (command, programs[language]):
        pool_of(each).close()


def test_a_write_path_of_a_program_is_judged(programs: dict[str, str]) -> None:
    """The markers are the same as in the correct program, and all else is the kit's."""
    if "java" not in programs:
        pytest.skip(lacks("java"))
    flag, guarantee = JAVA_WRITES
    found = campaign(f"{programs['java']} {flag}", guarantees=frozenset({guarantee}), stop_at_first=True)
    assert {failure.guarantee for failure in found.failures} == {guarantee}
    pool_of(f"{programs['java']} {flag}").close()


def test_the_exchange_in_the_guide_is_the_real_one() -> None:
    played = ProgramPool(shlex.join([sys.executable, str(SOURCES / "exchange.py"), str(GUIDE)]))
    try:
        assert perform(played)[1:] == [(NAME,), 'a segment is ".."', True, True, NAME, True, True]
    finally:
        played.close()
    said = {line.partition('"do":"')[2].partition('"')[0] for line in lines_of(GUIDE) if line.startswith("< ")}
    assert said == set(messages.FIELDS), "the exchange has a line of each message"


def test_the_guide_lists_every_message_field_and_error() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    rows = {
        name: line
        for line in text.splitlines()
        for name in re.findall(r"`(\w+)`", line.split("|")[1] if line.startswith("|") else "")
    }
    for name, (needed, optional) in messages.FIELDS.items():
        fields = set(re.findall(r"`(\w+)`", "".join(rows[name].split("|")[2:4])))
        assert fields == {*needed, *optional}, name
    assert all(f"| `{word}` |" in text for word in session.ERRORS)
    assert f"gives it {running.TURN_S:.0f} s" in text and f"({running.FIRST_START_S:.0f} s for" in text


HELLO = '{"do":"hello","protocol":1,"name":"p","modes":["direct"]}'
PROGRAM = """
import json, sys, time
lines = json.loads(sys.argv[1])
for answer in lines:
    if not sys.stdin.readline():
        break
    for said in answer:
        if said == "die":
            sys.exit("it hurts here")
        if said == "endless":
            while True:
                sys.stdout.write("x" * 65536)
        if said == "hang":
            time.sleep(60)
        print(said, flush=True)
while sys.stdin.readline():
    print('{"do":"wait"}', flush=True)
"""
WAIT = '{"do":"wait"}'
WRONG = (
    (
        "dies at start",
        [["die"]],
        "before it said hello it ended with exit code 1; on standard error it said: it hurts here",
    ),
    ("hangs at start", [["hang"]], 'printed no "wait" within 3 s'),
    ("speaks another protocol", [[HELLO.replace(":1", ":7"), WAIT]], "speaks protocol 7, this version of the kit"),
    ("has no mode", [[HELLO.replace("direct", "d"), WAIT]], "the modes ['d']"),
    ("says something else", [["Hello!", WAIT]], "'Hello!', which is no JSON object; standard output is for"),
    ("waits at once", [[WAIT]], 'print "hello", then "wait"'),
    ("another word", [[HELLO, WAIT], ['{"do":"store"}']], "`$.do`; it is one of hello, put"),
    (
        "a field too many",
        [[HELLO, WAIT], ['{"do":"get","id":1,"path":"a","p":1}']],
        "Object contains unknown field `p`",
    ),
    ("a field too few", [[HELLO, WAIT], ['{"do":"get","id":1}']], "Object missing required field `path`"),
    ("a wrong type", [[HELLO, WAIT], ['{"do":"get","id":true,"path":"a"}']], "Expected `int`, got `bool` - at `$.id`"),
    (
        "no base64",
        [[HELLO, WAIT], ['{"do":"put","id":1,"path":"a","data":"?"}']],
        "Invalid base64 encoded string - at `$.data`",
    ),
    ("deep nesting", [[HELLO, WAIT], ["[" * 60_000]], "which is no JSON object"),
    ("an endless line", [["endless"]], "a line of more than 1 MB"),
    ("an unknown call", [[HELLO, WAIT], ['{"do":"answer","call":7,"result":true}', WAIT]], "call 7, which is not open"),
    ("another part", [[HELLO[:-1] + ',"write":["begin"]}', WAIT]], "the parts ['begin'] of a write; "),
    (
        "a marker in a call of the markers",
        [[HELLO, WAIT], [WAIT], ['{"do":"marker","id":1,"call":1,"name":"a"}', WAIT]],
        '"marker" for call 1, which has no such operation',
    ),
    (
        "an unknown error",
        [[HELLO, WAIT], [WAIT], ['{"do":"answer","call":1,"error":"x"}', WAIT]],
        "error 'x'; write one",
    ),
    (
        "no result",
        [[HELLO, WAIT], [WAIT], ['{"do":"answer","call":1,"names":[]}', WAIT]],
        'without "result" or "error"',
    ),
    (
        "an id twice",
        [[HELLO, WAIT], ['{"do":"sleep","id":1,"ms":9}', '{"do":"sleep","id":1,"ms":9}', WAIT]],
        "id 1, which is that of an operation under way",
    ),
    (
        "an answer during an operation of the call",
        [
            [HELLO, WAIT],
            [WAIT],
            ['{"do":"sleep","id":1,"ms":9,"call":1}', '{"do":"answer","call":1,"result":true}', WAIT],
        ],
        "answered call 1, whose thread is at operation 1",
    ),
    ("goes on after wait", [[HELLO, WAIT], [WAIT + "\n" + WAIT]], 'after "wait"; print only after a line of the kit'),
    ("hangs", [[HELLO, WAIT], [WAIT], ["hang"]], 'within 3 s after \'{"event": "call", "call": 1'),
)


@pytest.mark.parametrize(("lines", "says"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_is_not_the_protocol_is_said_in_one_sentence(
    lines: list[list[str]], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_s = 3.0 if "within 3 s" in says else 60.0
    monkeypatch.setattr(running, "TURN_S", turn_s)
    monkeypatch.setattr(running, "LINE_SIZE_MAX", 1 << 20)
    monkeypatch.setattr(running, "FIRST_START_S", turn_s)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    command = shlex.join([sys.executable, "-S", str(program), json.dumps(lines)])
    with pytest.raises(HarnessError, match=re.escape(says)) as raised:
        campaign(command, runs=4, modes=("direct",), storages=("s3",))
    assert str(raised.value).startswith("--sut command: the program ") and "\n" not in str(raised.value)


ENDS = """
import json, sys
for text in sys.stdin:
    line = json.loads(text)
    if line["event"] == "hello":
        print('{"do":"hello","protocol":1,"name":"p","modes":["timeline"]}')
    if line.get("operation") == "create":
        sys.exit(3)
    if line["event"] == "call":
        print('{"do":"answer","call":%d,"names":[],"result":false}' % line["call"])
    print('{"do":"wait"}', flush=True)
"""


def test_a_program_that_ends_by_itself_is_a_process_that_died(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ENDS, encoding="utf-8")
    done = campaign(shlex.join([sys.executable, "-S", str(program)]), modes=("timeline",), shrinking=False, runs=6)
    assert not done.trouble and "G6" in {failure.guarantee for failure in done.failures}
    ended = [event.error or "" for f in done.failures for event in f.history.events if event.operation == "exited"]
    assert any("ended with exit code 3" in error for error in ended)


PROMISES_NOTHING = """
import json, sys
starts, calls = 0, {}
def say(**fields):
    print(json.dumps(fields))
for text in sys.stdin:
    line = json.loads(text)
    event = line["event"]
    if event == "hello":
        say(do="hello", protocol=1, name="p", modes=["direct"])
    elif event == "start":
        starts += 1
        AGAIN
    elif event == "call":
        number, operation, directory = line["call"], line["operation"], line["directory"]
        calls[number] = [operation, 0, True]
        if operation == "create":
            say(do="put", id=number, path=directory + "/" + line["name"], data="", if_absent=True)
        else:
            calls[number].append(directory + "/")
            say(do="list", id=number, prefix=directory + "/")
    else:
        number, error = line["id"] % 1000, line.get("error")
        call = calls[number]
        call[1] -= 1
        if error == "precondition-failed":
            say(do="answer", call=number, result=False)
        elif error and call[1] <= 0:
            say(do="answer", call=number, error=error)
        elif call[0] == "list":
            names = [path[len(call[3]):] for path in line["paths"]]
            say(do="answer", call=number, names=[n for n in names if ".marker." in n and n[-1] in "ED"])
        elif call[0] == "delete" and line.get("paths") and "paths" in line:
            call[1] = len(line["paths"])
            for at, path in enumerate(line["paths"], 1):
                say(do="delete", id=number + 1000 * at, path=path)
        elif call[1] <= 0:
            say(do="answer", call=number, result=bool(line["paths"]) if "paths" in line else True)
    print('{"do":"wait"}', flush=True)
"""


@pytest.mark.parametrize("again", ["pass", "sys.exit(1)", "print('{')", "if starts > 1: calls = None"])
def test_a_program_that_promises_nothing_is_used_again_as_long_as_that_changes_nothing(
    again: str, tmp_path: Path
) -> None:
    """Whatever a second start would do to it: it is judged by what it does when it is new."""
    program, runs = tmp_path / "program.py", volume(24, quick=6)
    again = again if again.startswith(("pass", "if")) else f"if starts > 1: {again}"
    program.write_text(PROMISES_NOTHING.replace("AGAIN", again), encoding="utf-8")
    command = shlex.join([sys.executable, "-S", str(program)])
    asked = {"shrinking": False, "guarantees": frozenset({"G1", "G2", "G6", "G10"})}
    done = campaign(command, modes=("direct",), storages=("local",), runs=runs, **asked)
    pool = pool_of(command)
    assert not done.failures and not done.statistics.differences and done.runs == runs
    assert pool.reuse_stopped is (again != "pass")


@pytest.mark.parametrize("language", ["go"], indirect=True)
def test_the_state_of_a_program_does_not_make_its_two_modes_differ(programs: dict[str, str], language: str) -> None:
    """A plan is run in both modes, and what the program kept of the first run would end the second."""
    command = f"{shlex.join([sys.executable, '-S', str(SOURCES / 'ends_when_started_again.py')])} {programs[language]}"
    system = load_system(f"command:{command}")
    made = (make_write_plan(seed, "direct", "s3") for seed in range(volume(6, quick=3)))
    plans = [plan for plan in made if comparable(plan, system)]
    with reusing(system, True):
        findings = [compare_modes(plan, system)[2] for plan in plans]
    assert sum(finding.judged for finding in findings) and not any(finding.breaches for finding in findings)
    assert pool_of(command).reuse_stopped


def test_a_killed_command_leaves_no_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ENDS.replace("sys.exit(3)", "pass"), encoding="utf-8")
    sut = f"command:{shlex.join([sys.executable, '-S', str(program)])}"
    words = ["verify", "--sut", sut, "--budget", "60s", "--jobs", "2"]
    kit = subprocess.Popen([sys.executable, "-m", "marker_sim", *words], cwd=tmp_path, stderr=subprocess.DEVNULL)
    started: set[psutil.Process] = set()
    deadline = time.monotonic() + 60
    while len(started) < 3 and time.monotonic() < deadline:  # One at least is a worker's.
        below = psutil.Process(kit.pid).children(recursive=True)
        started |= {child for child in below if child.is_running() and str(program) in _words(child)}
        time.sleep(0.05)
    kit.kill()
    kit.wait(60)
    assert len(started) >= 3
    assert psutil.wait_procs([child for child in started if _lives(child)], timeout=60)[1] == []


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def test_a_program_that_is_not_there_and_one_without_a_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    report = ("--report", os.fspath(tmp_path / "report"))
    assert main(("verify", "--sut", "command:./nothing-here", *report)) == 4
    assert "the program './nothing-here' was not found" in capsys.readouterr().err
    assert main(("verify", "--sut", "command", *report)) == 2
    assert "--start" in capsys.readouterr().err
