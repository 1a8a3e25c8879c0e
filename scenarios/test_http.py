"""`--sut http`, end to end: a correct server of ours is not accused, servers broken in one way are, nothing is left.

Every scenario says which faults it needs and fails when they did not happen.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History
from marker_sim.unusual_names import REFUSED
from properties import tools
from properties.faces.campaign import run_campaign
from properties.faces.judges import load_profile
from properties.faces.outcome import Campaign
from properties.faces.report import judge_campaign, notes, render_page
from properties.faces.targets import CampaignRequest, HttpTarget, ServerOptions
from properties.faces.worlds import UNREAD
from properties.volume import CI_ONLY, volume

SERVER = Path(__file__).parent / "servers" / "marker_server.py"
START = (
    f"{shlex.quote(sys.executable)} -S {shlex.quote(str(SERVER))} --port {{port}} --storage {{storage}}"
    " --threads {threads} --interval-ms {interval_ms}"
)
BUDGET_S = 120.0  # That no campaign of a few plans comes near to.
GONE_S = 60.0
ENDS_S = 60.0


def asked(
    tmp_path: Path, *, start: str = START, runs: int = 2, seed: int = 1, reader: str = "", startup_s: float = 30.0,
    batch_threads: int | None = None,
) -> CampaignRequest:  # fmt: skip
    return CampaignRequest(
        target=HttpTarget(version="7.7", startup_s=startup_s),
        modes=("timeline",),
        storages=("local",),
        budget_s=BUDGET_S,
        runs=runs,
        seed=seed,
        profile=load_profile("http"),
        shrinking=False,
        server=ServerOptions(start=start, reader=reader, batch_threads=batch_threads),
        report=tmp_path,
    )


def campaign(request: CampaignRequest, histories: list[History] | None = None) -> Campaign:
    shown = histories if histories is not None else []
    return run_campaign(request, lambda line: None, on_run=shown.append)


def accused(done: Campaign) -> dict[str, str]:
    return {failure.guarantee: failure.message for failure in done.failures}


def test_the_correct_server_is_not_accused(tmp_path: Path) -> None:
    done = campaign(asked(tmp_path, seed=7, runs=volume(8, quick=2)))
    assert accused(done) == {}
    assert done.not_reached == ()
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    wanted = {"G1", "G3", "G4", "G6", "G8", "G9"}  # In the few plans of some seconds.
    assert {name for name in wanted if not rows[name].judged} == set()
    assert done.last is not None and done.seed == 7
    assert done.sut_version == done.last.header.sut_version == "7.7"
    hostile = rows["G12"]  # A busy machine has time for one round of them, in which a server may be dead or paused.
    assert hostile.judged + sum(hostile.excused.values()) >= len(REFUSED) < 2 * hostile.judged
    assert [why.partition(":")[0] for why in done.left_out] == ["faults of connections"] * bool(tools.wires())
    assert rows["G1"].read_at_ack_share == 1.0
    assert done.last.header.witness == "effects"
    assert done.statistics.operations["create"]["ok"] > 20


@pytest.mark.parametrize(
    ("told", "batch_threads", "held_to", "broken"),
    [
        ("", None, {20}, False),
        pytest.param("--threads 3", 3, {3}, False, marks=CI_ONLY),
        ("--threads 3", 2, {2}, True),
        ("--threads {threads}", 2, {2}, False),
    ],
)
def test_a_server_is_held_to_the_batch_threads_that_it_was_told(
    tmp_path: Path, told: str, batch_threads: int | None, held_to: set[int], broken: bool
) -> None:
    histories: list[History] = []
    start = START.replace(" --threads {threads} --interval-ms {interval_ms}", f" {told}")
    done = campaign(asked(tmp_path, start=start, batch_threads=batch_threads, runs=volume(2, quick=1)), histories)
    assert accused(done).keys() == ({"G8"} if broken else set())
    assert {history.header.num_threads for history in histories} == held_to
    assert {history.header.options["interval_ms"] for history in histories} == {"50"}
    outcome = judge_campaign(done, load_profile("http"), None, tmp_path, ("verify",))
    assert f"batch threads: {max(held_to)}, " in "\n".join(line for note in notes(outcome) for line in note.lines)
    assert outcome.to_dict()["batching"] == done.batching == {
        name: histories[0].header.options[name] for name in ("batch threads", "batch interval in ms")
    }  # fmt: skip
    assert "for --start has no {interval_ms}" in render_page(outcome)


def test_stored_names_of_another_format_come_from_a_reader_command(tmp_path: Path) -> None:
    histories: list[History] = []
    reader = """sh -c 'cat "$0"/MARKERS[0-9]* 2>/dev/null || true' {dir}"""
    done = campaign(asked(tmp_path, reader=reader, runs=volume(2, quick=1)), histories)
    assert accused(done) == {}
    assert {history.header.layout for history in histories} == {"names"}
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert rows["G3"].judged > 0
    assert rows["G8"].verdict == "not-applicable"


def test_a_reader_that_fails_is_skipped_and_quoted_and_does_not_end_the_campaign(tmp_path: Path) -> None:
    """Sometimes while servers live, and always when they are dead."""
    once = """mkdir {0}/once 2>/dev/null && cat "$0"/MARKERS* || {{ echo "database is locked" >&2; exit 5; }}"""
    reader = f"""sh -c '{once.format(tmp_path)}' {{dir}}"""
    done = campaign(asked(tmp_path, reader=reader, runs=2))
    assert done.runs == 2 and not done.trouble and accused(done) == {}
    said = [each for each in done.not_reached if each.startswith(UNREAD)]
    assert len(said) == 1 and "ended with exit code 5: database is locked" in said[0]


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("no-such-program-here --port {port}", "'no-such-program-here' was not found"),
        ("sh -c 'echo first sign of trouble; exit 3'", "exit code 3 before it answered; its last output: first sign"),
        ("sh -c 'echo waiting; sleep 600'", "did not answer GET /v1/hoodie/marker/dir/exists"),
        ("python3 -m http.server --bind 127.0.0.1 {port}", "with true or false within 6 s (404 "),
        (
            "sh -c 'echo java.net.BindException: Address already in use; exit 1'",
            "was in use 4 times, each time a fresh one; does the command pass {port} on? Its last output: java.net",
        ),
    ],
)
def test_a_command_that_cannot_serve_gets_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str, words: str
) -> None:
    before = children()
    with pytest.raises(HarnessError, match=re.escape(words)):
        campaign(asked(tmp_path, start=start, startup_s=6.0 if "404" in words else 1.5))
    assert gone(before)


def test_a_full_disk_for_the_servers_output_is_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Path.open

    def full(path: Path, *how: Any, **settings: Any) -> Any:
        if path.name == "server-1.log":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path.name)
        return opened(path, *how, **settings)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(HarnessError, match=r"no space left for the server's output \(server-1\.log\)"):
        campaign(asked(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=CI_ONLY)])
def test_servers_end_with_a_kit_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    words = ["verify", "--sut", "http", "--storage", "local", "--start", START, "--budget", "120s"]
    command = [sys.executable, "-m", "marker_sim", *words, "--report", str(tmp_path / "report")]
    kit = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_for(lambda: servers_of(kit.pid), GONE_S), "no server was started"
        servers = servers_of(kit.pid)
        kit.send_signal(number)
        kit.wait(GONE_S)
        assert wait_for(lambda: not any(server.is_running() for server in servers), GONE_S), "a server outlived the kit"
    finally:
        kit.kill()
        kit.wait()


def servers_of(kit: int) -> list[psutil.Process]:
    found = []
    for process in psutil.Process(kit).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if str(SERVER) in process.cmdline():
                found.append(process)
    return found


def test_a_port_taken_once_is_replaced(tmp_path: Path) -> None:
    flag = tmp_path / "tried"
    once = 'test -e "$0" || { touch "$0"; echo Address already in use; exit 1; }; exec "$@"'
    start = f"{shlex.join(['sh', '-c', once, str(flag)])} {START}"
    done = campaign(asked(tmp_path, start=start, runs=1))
    assert flag.exists()
    assert done.runs > 0


def test_an_empty_command_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="empty command"):
        campaign(asked(tmp_path, start="  "))
    with pytest.raises(UsageError, match="is not a valid command line"):
        campaign(asked(tmp_path, start="sh -c 'unbalanced"))


def test_only_the_known_placeholders_are_replaced(tmp_path: Path) -> None:
    says = 'printf "%s|" "$@" > "$0/words-$$"; exit 1'  # Two start, and one is killed.
    with pytest.raises(HarnessError, match="exit code 1"):
        campaign(
            asked(tmp_path, start=f"{shlex.join(['sh', '-c', says, str(tmp_path)])} {{port}} {{other}} {{threads}}")
        )
    port, other, threads, _ = max(out.read_text() for out in tmp_path.glob("words-*")).split("|")
    assert port.isdigit()
    assert threads.isdigit()
    assert other == "{other}"


def test_a_server_that_exits_by_itself_is_accused_and_not_the_kit(tmp_path: Path) -> None:
    start = f"""sh -c '"$@" & server=$!; sleep 1; kill -9 $server' sh {START}"""
    done = campaign(asked(tmp_path, start=start, runs=2))
    assert any("exited by itself" in failure.message for failure in done.failures if failure.guarantee == "G6")


def test_what_left_its_group_is_found_and_ended(tmp_path: Path) -> None:
    started = tmp_path / "escaped"
    leaves = 'setsid sleep 601 & echo $! > "$0"; exec "$@"'
    start = f"{shlex.join(['sh', '-c', leaves, str(started)])} {START}"
    before = children()
    done = campaign(asked(tmp_path, start=start, runs=1))
    assert done.runs > 0
    assert started.exists()
    assert gone(before)
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "601"]]


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=CI_ONLY)])
def test_ctrl_c_ends_everything_that_was_started(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "marker_sim", "verify", "--sut", "http", "--start", START]
    command += ["--storage", "local", "--budget", "60s", "--report", str(tmp_path / "report")]
    (tmp_path / "scratch").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        # A look at all processes costs a busy machine more than a server does, so the folder is looked at first.
        assert wait_for(lambda: any((tmp_path / "scratch").iterdir()), ENDS_S), "no campaign began"
        assert wait_for(lambda: bool(using(tmp_path / "scratch")), ENDS_S), "no server was started"
        time.sleep(1.5)  # Into the load, whose threads have to end as well.
        process.send_signal(number)
        said, _ = process.communicate(timeout=ENDS_S)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert wait_for(lambda: not using(tmp_path / "scratch"), GONE_S), using(tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def gone(before: set[int]) -> bool:
    return wait_for(lambda: not children() - before, GONE_S)


def using(directory: Path) -> list[list[str]]:
    """Processes whose command names a path below a directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "pid"]):
        words = process.info["cmdline"] or []
        if any(f"{directory}/" in word for word in words):
            found.append(words)
    return found


def wait_for(condition: object, timeout_s: float) -> bool:
    assert callable(condition)
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
