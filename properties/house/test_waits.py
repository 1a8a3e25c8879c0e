"""No wait of the kit is without a bound, as far as a syntax tree shows it; each that is has a reason.

A lock that a `with` takes is not looked at: those of the kit are held for a moment, and a campaign that hangs even so
is ended by its time limit (scenarios/test_hangs.py).
"""

from __future__ import annotations

import ast
import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from marker_sim.plan import Plan
from marker_sim.worlds.http import probes
from properties.faces.judges import load_profile
from properties.faces.surroundings import StartedProgram
from properties.faces.worlds import Command, Fleet, ForeignSystem, LocalWorld, PlannedRun, Server
from properties.package_tree import MODULES, PACKAGE, tree_of

ENDS_S = 10.0
# Methods that wait for ever when they are given nothing.
WAIT = frozenset({"join", "wait", "get", "result", "recv", "recv_bytes", "accept", "communicate", "readline"})
# Functions that wait for ever without this many arguments, or one whose name has "timeout" in it.
WAIT_WITHOUT = {
    "as_completed": 2, "create_connection": 2, "HTTPConnection": 3, "select": 4, "urlopen": 3, "wait": 2, "wait_for": 2,
    "run": 99, "call": 99, "check_call": 99, "check_output": 99,
}  # fmt: skip
OF_MODULES = ("subprocess", "select", "socket", "concurrent.futures", "http.client", "urllib.request")

RUNS = "each run has a deadline of its own, and the time limit of the command ends the rest"
OF_THE_WORLD = "a step of the world that runs it, whose clock and steps are bounded"
CHILD = "it runs in a process that waits for what the kit asks, and ends with the kit"
DAEMON = "a thread that waits for work and holds up nobody: a daemon"
BOUNDED_CALLS = "each call below it has a time-out"
ALLOWED = {
    "tables/sources.py TableSource.close": "an audit reads files of a file system, and is no campaign",
    "tables/sources.py TableSource.each": "the same",
    "tables/sources.py DirectorySource.tree": "the same",
    "tables/sources.py BucketSource.tree": BOUNDED_CALLS,
    "campaign/played_shrinking.py PlayedShrinker._some": RUNS,
    "command/session.py ProgramSession._pump": OF_THE_WORLD,
    "command/session.py ProgramSession.call": OF_THE_WORLD,
    "markers/several.py for_each": OF_THE_WORLD,
    "markers/server.py TimelineServer._answer": OF_THE_WORLD,
    "report/table.py as_text": "a console gives back what was printed to it, and waits for nobody",
    "serve/runtime.py FairThreadPool._work": DAEMON,
    "surroundings/worker_pool.py WorkerPool._perform": "an answer has begun, and its worker sends the rest or ends",
    "surroundings/worker_pool.py main": CHILD,
    "surroundings/spark_session.py _end_jvm": "py4j sends one line and closes its sockets",
    "worlds/http/plan_wires.py PlanWires._stop": BOUNDED_CALLS,
    "worlds/http/plan_wires.py PlanWires.heal": "what was not cancelled has ended by then",
    "worlds/processes/coordinator.py Coordinator._listen": DAEMON,
    "worlds/processes/coordinator.py Coordinator._serve": DAEMON,
    "worlds/processes/coordinator.py CoordinatorClient.ask": CHILD,
    "worlds/processes/children.py ProcessBackend.listen": CHILD,
    "worlds/processes/children.py ProcessBackend.receive": CHILD,
    "worlds/processes/children.py drive": CHILD,
    "worlds/processes/host.py ProcessHost.ask.asked": DAEMON,
    "worlds/processes/children.py execute": CHILD,
    "worlds/processes/__main__.py serve": CHILD,
    "worlds/s3_front/http_server.py HttpServer.close": "its loop looks every 20 ms",
    "worlds/s3_front/consistency_probe.py ProbeEndpoint._end": BOUNDED_CALLS,
    "worlds/s3_front/consistency_probe.py ProbeEndpoint.race": BOUNDED_CALLS,
    "worlds/s3_front/consistency_probe.py ProbeEndpoint.race.run": "the barrier has a time-out",
    "worlds/simulated/environment.py SimulatedBackend.receive": OF_THE_WORLD,
    "worlds/spark/application.py Application._listen": DAEMON,
    "worlds/spark/driver.py _listen": CHILD,
    "worlds/spark/driver.py drive": CHILD,
    "worlds/spark/session.py answer_kit": CHILD,
    "worlds/spark/tasks.py WriteTasks.__call__": "no wait: the context of a task of Spark",
}


def waits(tree: ast.AST, owner: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Calls without a bound, with the function that each is in."""
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        owner = (*owner, tree.name)
    if isinstance(tree, ast.Call) and not _bounded(tree):
        yield ".".join(owner), f"{tree.lineno}: {ast.unparse(tree)[:100]}"
    if isinstance(tree, ast.withitem) and "PoolExecutor(" in ast.unparse(tree.context_expr):
        yield ".".join(owner), f"{tree.context_expr.lineno}: {ast.unparse(tree)[:100]}, which waits at its end"
    for child in ast.iter_child_nodes(tree):
        yield from waits(child, owner)


def _bounded(call: ast.Call) -> bool:
    """Whether a call is no wait, or has a bound; one that must not block is written so in the open."""
    if any(keyword.arg and "timeout" in keyword.arg for keyword in call.keywords):
        return True
    of = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    if name == "acquire":
        return len(call.args) == 2 or "False" in (*map(ast.unparse, call.args[:1]), given.get("blocking"))
    if name == "shutdown" and of:
        return bool(call.args) or given.get("wait") == "False"
    if name in WAIT and of:
        return bool(call.args)
    if name == "map":
        return "pool" not in of.lower()
    if name in WAIT_WITHOUT and (not of or of in OF_MODULES or name == "wait_for"):
        return len(call.args) >= WAIT_WITHOUT[name] or (not of and name in ("run", "call", "select"))
    return True


@cache
def found() -> frozenset[tuple[str, str]]:
    """Every wait of the package without a bound: its module and function, and where."""
    return frozenset(
        (f"{path.relative_to(PACKAGE)} {owner}", where) for path in MODULES for owner, where in waits(tree_of(path))
    )


def test_every_wait_has_a_bound_or_a_reason() -> None:
    missing = sorted(f"{owner}, line {where}" for owner, where in found() if owner not in ALLOWED)
    assert not missing, "these wait without a bound; give each a time-out, or a reason in ALLOWED:\n" + "\n".join(
        missing
    )


def test_no_reason_stands_for_a_wait_that_is_gone() -> None:
    assert sorted(ALLOWED.keys() - {owner for owner, _ in found()}) == []


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("thread.join(); process.wait(); queue.get(); future.result(); pipe.recv(); process.communicate()", 6),
        ("thread.join(2); process.wait(timeout=1); queue.get(timeout=2); table.get(key); ', '.join(words)", 0),
        ("lock.acquire(); lock.acquire(True); lock.acquire(blocking=put)", 3),
        ("lock.acquire(False); lock.acquire(blocking=False); lock.acquire(timeout=1); lock.acquire(True, 1)", 0),
        ("subprocess.run(words); subprocess.run(words, timeout=2); run(plan)", 1),
        ("wait(futures, return_when=FIRST); wait(pipes, 2); as_completed(futures); select.select(a, b, c)", 3),
        ("with ThreadPoolExecutor(2) as pool:\n    pool.map(do, tasks)", 2),
        ("pool.shutdown(); pool.shutdown(wait=False); sock.shutdown(how)", 1),
        ("socket.create_connection(place); socket.create_connection(place, 2); HTTPConnection(host, port)", 2),
    ],
)
def test_waits_are_seen_in_the_open(code: str, number: int) -> None:
    assert len(list(waits(ast.parse(code)))) == number


def test_a_reply_that_comes_byte_by_byte_for_ever_does_not_keep_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "ONCE_S", 0.5)
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while not over.wait(0.05):
                connection.sendall(b"x")

    threading.Thread(target=drip, daemon=True).start()
    system = ForeignSystem(
        name="a", version="", profile=load_profile("http"),
        world=partial(LocalWorld, root=tmp_path, form="path", command="none"),
    )  # fmt: skip
    plan = Plan(directories=("t/.hoodie/.temp/001",), num_threads=2, interval_ms=50)
    run = PlannedRun(system, Fleet(Command(text="none"), tmp_path, tmp_path), plan, "run", 0.0)
    (place,) = run.places
    process = subprocess.Popen(["sleep", "600"])
    try:
        run.injector.servers = [
            Server("server-1", listener.getsockname()[1], StartedProgram(process), tmp_path / "log")
        ]
        asking = threading.Thread(target=run.probes.ask_once, args=("create", place, "p/a.marker.CREATE"), daemon=True)
        asking.start()
        asking.join(ENDS_S)
        assert not asking.is_alive()
    finally:
        over.set()
        listener.close()
        process.kill()
        process.wait(ENDS_S)
        run.world.close()
