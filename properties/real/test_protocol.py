"""docs/protocol.md says what the reference's server answers and what the kit sends, takes as an answer and judges."""

from __future__ import annotations

import ast
import re
import shlex
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from marker_sim import serve
from marker_sim.markers import protocol
from marker_sim.names import MarkerDirectory, check_marker_name
from marker_sim.plan import MALFORMED, SPELLINGS
from marker_sim.serve import app, connections
from marker_sim.unusual_names import KEPT, REFUSED, must_be_refused, written
from marker_sim.worlds.http import http_client
from properties.faces.judges import load_profile
from properties.faces.serve import WAITING_MAX
from properties.faces.worlds import ANSWER_TIMEOUT_S, FOR_MS_MAX, SECOND_STARTUP_S
from properties.real.served import Served, serving

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
LAKE = "/data/lake"
PLACE = MarkerDirectory("data/lake/trips", "001")
END = "\x1e"
YES = {"yes": True, "no": False}
TAKEN_FOR = {
    "created": ("ok", "created"),
    "exists": ("ok", "exists"),
    "names": ("ok", ...),
    "yes": ("ok", True),
    "no": ("ok", False),
    "refused": ("fail", None),
    "unknown": ("info", None),
}


def blocks(language: str) -> list[str]:
    """The contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def rows(first: str) -> list[list[str]]:
    """The cells of the table whose header begins with these cells."""
    table = PAGE.partition(f"\n| {first} |")[2].partition("\n\n")[0]
    assert table, f"there is a table {first}"
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()[2:]]


def bare(cell: str) -> str:
    """What a cell has between backquotes."""
    return cell.partition("`")[2].rpartition("`")[0]


@pytest.fixture
def lake() -> Iterator[Path]:
    """Where no name needs quotes, as on the page."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        base = Path(folder) / "data" / "lake"
        base.mkdir(parents=True)
        yield base


@pytest.fixture
def served(lake: Path) -> Iterator[Served]:
    """The server that the page starts, at a free port."""
    (command,) = re.findall(r"`marker-sim serve ([^`]+)`", PAGE)
    words = shlex.split(command)
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given.pop("--port") == "8080" and given.pop("--base") == LAKE
    with serving("--base", str(lake), *(word for pair in given.items() for word in pair)) as server:
        yield server


def test_the_requests_of_the_page_get_the_replies_of_the_page(served: Served, lake: Path) -> None:
    steps = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks("console")), re.MULTILINE)
    (defined,) = (block for block in blocks("sh") if block.startswith("URL="))
    defined = defined.replace("127.0.0.1:8080", f"127.0.0.1:{served.port}").replace(LAKE, str(lake))
    script = defined + "".join(f"{command}\nprintf '{END}'\n" for command, _ in steps)
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, timeout=60, env=None, check=False)
    assert done.returncode == 0 and not done.stderr, done
    heard = done.stdout.replace(str(lake), LAKE).split(END)[:-1]
    assert len(steps) > 20
    for (command, expected), reply in zip(steps, heard, strict=True):
        assert reply.rstrip("\n") == expected.rstrip("\n"), command
    asked = {(route, "POST" if " -X POST " in line else "GET") for line, _ in steps for route in _routes(line)}
    assert set(app.METHODS.items()) <= asked, "each route is asked for"


def _routes(command: str) -> list[str]:
    return re.findall(r'"\$URL([^"]+)"', command)


def test_the_request_of_the_page_is_what_the_kit_sends_and_gets_its_reply(served: Served, lake: Path) -> None:
    sent, reply = (block.replace("\n", "\r\n") for block in blocks("http"))
    reply = reply.removesuffix("\r\n")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        received: list[str] = []

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                received.append(connection.recv(65_536).decode())
                connection.sendall(reply.encode())

        thread = threading.Thread(target=answer)
        thread.start()
        asked = {
            "markerdirpath": f"{LAKE}/trips/.hoodie/.temp/002",
            "markername": "größe=1/a b+c%2F.parquet.marker.MERGE",
        }
        outcome = http_client.HttpConnection(port).call("create", asked, lambda: None)
        thread.join()
    assert outcome == http_client.HttpOutcome("ok", "created", None)
    assert re.sub(r"(python-urllib3)/\S+", r"\1", received[0]) == sent.replace(":8080", f":{port}")
    with served.connect() as connection:
        connection.sendall(sent.replace(LAKE.replace("/", "%2F"), str(lake).replace("/", "%2F")).encode())
        assert connection.recv(65_536).decode() == reply


def test_every_route_parameter_and_status_of_the_reference_is_on_the_page() -> None:
    table = rows("route | method")
    assert {bare(route): method for route, method, *_ in table} == app.METHODS
    assert {method_route[1] for method_route in http_client.ROUTES.values()} <= set(app.METHODS)
    named = {bare(row[0]) for row in rows("parameter")}
    assert named == {word.decode() for word in app._PARAMETERS} | {"basepath"}
    assert named == set(re.findall(r"`(\w+)`", " ".join(row[2] for row in table)))
    assert {int(status) for status, _ in rows("status | of the reference")} == _statuses()


def _statuses() -> set[int]:
    """Every status that the code of the server names where it makes a reply."""
    found = set()
    folder = Path(serve.__file__).parent
    for path in (*folder.glob("*.py"), Path(protocol.__file__)):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            if getattr(call.func, "id", getattr(call.func, "attr", "")) in ("Reply", "Refusal", "_refuse"):
                found |= {each.value for each in ast.walk(call.args[0]) if isinstance(each, ast.Constant)}
    return {each for each in found if isinstance(each, int) and 100 <= each < 600}


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    for said in (
        f"more than {app.REQUEST_ID_SIZE_MAX} characters",
        f"a body of more than {app.BODY_SIZE_MAX_BYTES} bytes",
        f"{connections.HEAD_SIZE_MAX_BYTES} bytes of target",
        f"whole {connections.REQUEST_TIMEOUT_S:.0f} s after",
        f"or {WAITING_MAX} requests wait",
        f"replies of {app.GZIP_SIZE_MIN_BYTES} bytes and more",
        f"after {connections.KEEP_ALIVE_S:.0f} s without a request",
        f"it has {ANSWER_TIMEOUT_S:.0f} s",
        f"(a second server {SECOND_STARTUP_S:.0f} s)",
        f"`SIGSTOP` | both | for up to {FOR_MS_MAX / 1000:.1f} s",
        f"of up to {max(len(name.encode()) for name in KEPT)} |",
    ):
        assert said in " ".join(PAGE.split()), said


@pytest.mark.parametrize("row", rows("route | status | body"), ids=" ".join)
def test_a_reply_is_taken_for_what_the_page_says(row: list[str]) -> None:
    route, status, body, meaning = row
    operation = next(name for name, (_, path) in http_client.ROUTES.items() if path == bare(route))
    outcome = http_client.interpret(operation, int(status), bare(body).encode())
    kind, value = TAKEN_FOR[meaning]
    assert outcome.kind == kind
    assert isinstance(outcome.value, tuple) if value is ... else outcome.value is value or outcome.value == value


def test_the_names_of_the_page_are_those_of_the_plans() -> None:
    *table, _long = rows("name | must be refused")
    for _what, must, reference, example in table:
        name = _unescaped(bare(example))
        assert must_be_refused(name) or "\\x" in example if YES[must] else not must_be_refused(name)
        assert name in (REFUSED if YES[must] else KEPT)
        try:
            check_marker_name(name)
        except ValueError:
            assert reference == "refuses it", example
        else:
            assert reference == "keeps it", example
    for sent, word in ((REFUSED, "yes"), (KEPT, "no")):
        shown = {_kind(_unescaped(bare(row[3]))) for row in table if row[1] == word}
        assert shown == {_kind(name) for name in sent if len(name) < 200}


def _unescaped(example: str) -> str:
    """The name that an example stands for; a byte that is no UTF-8 is a surrogate, as in plans."""
    text = re.sub(r"\\x(..)", lambda match: bytes.fromhex(match[1]).decode("utf-8", "surrogateescape"), example)
    return re.sub(r"\\u(....)", lambda match: chr(int(match[1], 16)), text)


def _kind(name: str) -> str:
    """Why a name is odd."""
    kinds = {
        "empty": not name,
        "control": any(ord(letter) < 0x20 or letter in "\x7f\x85" for letter in name),
        "no UTF-8": any("\ud800" <= letter <= "\udfff" for letter in name),
        "climbs": ".." in name.split("/"),
        "absolute": name.startswith("/"),
        "separator": any(letter in "\u2028\u2029" for letter in name),
        "mark": "\ufeff" in name,
        "empty segment": "//" in name,
        "file": name.startswith("MARKERS") and "/" not in name,
        "below a file": name.startswith("MARKERS"),
        "no suffix": ".marker." not in name,
    }
    return next(kind for kind, applies in kinds.items() if applies)


def test_the_directories_of_the_page_are_those_that_plans_send(served: Served, lake: Path) -> None:
    table = rows("directory | in plans")
    assert {bare(form) for _, form, _ in table} == {*SPELLINGS, *MALFORMED}
    for directory, form, must in table:
        assert bare(directory) == written(PLACE, f"/{PLACE.path}", bare(form))[0]
        name, given = "f0_0-0-0_001.parquet.marker.CREATE", bare(directory).replace(LAKE, str(lake))
        answer = served.ask("POST", "/create", markerdirpath=given, markername=name)
        assert must.startswith("the same directory" if bare(form) in SPELLINGS else "refused") and (
            answer.status == 200 if bare(form) in SPELLINGS else 400 <= answer.status < 500
        )
    assert served.names(f"{lake}/trips/.hoodie/.temp/001") == [name], "two spellings, one directory"


def test_the_promises_of_the_page_are_those_of_the_profiles() -> None:
    http, alone = load_profile("http"), load_profile("http-one-server")
    table: dict[str, list[Any]] = {row[0]: row[2:] for row in rows("guarantee | the server ...")}
    applicable = {rule for row in http.rules for rule in row.guarantees}
    applicable = {each for each in applicable if http.promise(each, "timeline", "local", "none").applicable}
    assert set(table) == applicable
    for guarantee, (one, two, outside) in table.items():
        for under, cell in (("none", one), ("restart", one), ("second-server", two), ("outside", outside)):
            assert http.promise(guarantee, "timeline", "local", under).promised is YES[cell], (guarantee, under)
            held = alone.promise(guarantee, "timeline", "local", under)
            assert held.applicable and held.promised is (YES[cell] and under != "second-server")
