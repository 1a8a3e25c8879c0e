"""What a hostile plan sends: nothing that leaves the kit's own storage, and nothing that a correct server accepts."""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import urlencode

import pytest

from marker_sim.errors import UsageError
from marker_sim.names import MarkerDirectory, check_marker_name
from marker_sim.plan import MALFORMED, SPELLINGS, Op, Plan, read_plan, write_plan
from marker_sim.system import reference
from marker_sim.unusual_names import KEPT, REFUSED, written
from properties.faces.cli import parse_number
from properties.faces.report import plan_sentences
from properties.faces.search import make_hostile_plan
from properties.faces.serve import locate, parse_base
from properties.faces.targets import INTERVALS_MS, THREADS, THREADS_MAX, batching
from properties.faces.worlds import as_sent, interpret, run

PLACE = MarkerDirectory("r1/t3", "20260101000000005")
ROOTS = ("/tmp/kit/storage", "s3a://lake", "file:/tmp/kit/storage")


@pytest.mark.parametrize("root", ROOTS)
def test_every_malformed_directory_lies_below_the_runs_own_and_is_refused(root: str) -> None:
    sent = [written(PLACE, f"{root}/{PLACE.path}", form) for form in MALFORMED]
    assert len({target for _, target in sent} - {PLACE.path}) == len(MALFORMED)
    for address, target in sent:
        start = root.partition("://")[2] or root.removeprefix("file:")
        path = posixpath.normpath(address.partition("://")[2] or address.removeprefix("file:"))
        assert path == f"{start}/{target}" and path.startswith(f"{start}/r1/")
        with pytest.raises(Exception, match="markerdirpath is refused"):
            locate(address, (parse_base(root if "://" in root else root.removeprefix("file:")),))


def test_spellings_are_one_directory(tmp_path: Path) -> None:
    address = f"{tmp_path}/{PLACE.path}"
    base = parse_base(str(tmp_path))
    said = {written(PLACE, address, form) for form in ("", *SPELLINGS)}
    assert len(said) == 3 and {target for _, target in said} == {PLACE.path}
    assert len({locate(each, (base,)) for each, _ in said}) == 1
    assert written(PLACE, f"s3a://lake/{PLACE.path}", "double-slash")[0] == f"s3a://lake/{PLACE.path}"


def test_what_must_be_refused_is_refused_by_the_reference_and_is_no_text_or_has_control_characters() -> None:
    for name in REFUSED:
        sent = as_sent(name)
        with pytest.raises(ValueError):  # Of which UnicodeDecodeError is one.
            check_marker_name(sent if isinstance(sent, str) else sent.decode())
    assert sum(isinstance(as_sent(name), bytes) for name in REFUSED) == 5
    letters = {letter for name in REFUSED for letter in name}
    assert letters >= {chr(code) for code in (*range(32), 0x7F, 0x85)}
    assert not letters & {letter for name in KEPT for letter in name if not letter.isascii()}
    assert all(len(urlencode({"markername": name})) < 7_000 for name in KEPT), (
        "a longer request line has limits of its own"
    )


@pytest.mark.parametrize("storage", ["local", "s3"])
def test_a_hostile_plan_asks_for_everything_kills_after_that_and_is_stored_as_text(
    storage: str, tmp_path: Path
) -> None:
    files, ways = set[int](), set[int]()
    for seed in range(20):  # Neither many files nor names at once: less than one time in a million.
        plan = make_hostile_plan(seed, storage, THREADS, INTERVALS_MS)
        write_plan(plan, tmp_path / "plan.json")
        assert read_plan(tmp_path / "plan.json") == plan
        hostile = {(op.name, op.spelled) for op in plan.ops if op.kind == "hostile"}
        assert {name for name, form in hostile if not form} == set(REFUSED)
        assert {form for _, form in hostile} == {"", *MALFORMED}
        creates = [op for op in plan.ops if op.kind == "create"]
        assert {op.name for op in creates} >= set(KEPT) and {op.spelled for op in creates} == {"", *SPELLINGS}
        (kill,) = plan.faults
        asked = plan.ops[: kill.n]
        assert {(op.name, op.spelled) for op in asked if op.kind == "hostile"} == hostile
        assert {op.name for op in asked} >= set(KEPT) and {op.kind for op in plan.ops[kill.n :]} >= {"list", "create"}
        files.add(plan.num_threads)
        ways.add(len({op.actor for op in creates}))
    assert max(files) == max(THREADS) and len(ways) == 2


@pytest.mark.parametrize(
    ("op", "problem"),
    [
        ({"kind": "create", "spelled": "climbing"}, "spelled 'climbing' is none of"),
        ({"kind": "hostile", "spelled": "backwards"}, "spelled 'backwards' is none of"),
        ({"kind": "hostile", "name": "\ud800"}, "neither text nor bytes"),
    ],
)
def test_an_operation_that_nobody_could_send_is_refused(op: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Plan.from_dict({"ops": [{"actor": "executor-0", **op}]})


def test_a_hostile_operation_is_told_so_that_a_terminal_shows_it() -> None:
    ops = (
        Op(actor="executor-0", kind="hostile", name="a\udcff\n"),
        Op(actor="executor-0", kind="hostile", name="a", spelled="climbing"),
        Op(actor="executor-0", kind="create", name="a.marker.CREATE", spelled="slash-at-end"),
    )
    _, name, climbing, spelled = plan_sentences(Plan(ops=ops))
    assert r"hostile name 'a\udcff\n'" in name and "climbing" in climbing and "(written slash-at-end)" in spelled
    for mode, refused in (("timeline", 2), ("direct", 1)):  # What a request alone can say is left out without one.
        ran = run(Plan(mode=mode, storage="local", ops=ops), reference())
        assert sum(event.kind == "fail" and event.operation == "hostile" for event in ran.events) == refused


@pytest.mark.parametrize("operation", ["list", "create", "exists"])
def test_a_reply_that_does_not_parse_is_shown_as_it_came(operation: str) -> None:
    body = b'["a\rb\xff' + b"x" * 300
    error = interpret(operation, 200, body).error or ""
    assert r"""b'["a\rb\xffx""" in error and error.endswith(f"and {len(body) - 160} bytes more")
    assert interpret(operation, 400, b"no\r\nname").error == r"400 no\r\nname"


def test_what_a_server_was_not_told_is_hudis_default_or_what_the_user_said() -> None:
    told = batching("s --port {port} -n {threads} -i {interval_ms}", None)
    assert told.threads == (1, 2, 3, 20) and 120 in told.intervals_ms
    untold = batching("s --port {port}", None)
    assert (untold.threads, untold.intervals_ms) == ((20,), (50,))
    assert all("Hudi's default" in words for words in untold.words.values())
    for start in ("s {port}", "s {port} {threads}"):
        assert batching(start, 7).threads == (7,) and "--batch-threads" in batching(start, 7).words["batch threads"]
    for text in ("0", "1001", "x", "-1", "²", ""):
        with pytest.raises(UsageError, match="from 1 to 1000"):
            parse_number(text, "--batch-threads", THREADS_MAX)
