"""`--sut http --storage s3`, end to end: every effect in order at the kit's front, and endpoints of somebody else's.

Every scenario says which faults it needs and fails when they did not happen.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.result import Campaign
from marker_sim.errors import HarnessError
from marker_sim.faults import FAULT_CLASS
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.report.page import render_page
from marker_sim.report.verdict import judge_campaign
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.target import CampaignRequest, ServerOptions
from marker_sim.worlds.http.external_s3 import NEED_THE_FRONT
from marker_sim.worlds.http.front_world import TROUBLES
from marker_sim.worlds.http.hostile_rounds import REFUSED
from marker_sim.worlds.http.rounds import KINDS
from marker_sim.worlds.http.s3_capabilities import honest, name_of
from marker_sim.worlds.http.storage_wire_rounds import WORDS
from marker_sim.worlds.http.world import Endpoint
from marker_sim.worlds.interceptor import Interceptor
from marker_sim.worlds.proxies.install import missing
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.s3_front import ProbedCapabilities, S3Front

SERVERS = Path(__file__).parent / "servers"
PYTHON = f"{shlex.quote(sys.executable)} -S"
START = (
    f"{PYTHON} {shlex.quote(str(SERVERS / 'marker_server.py'))} --port {{port}} --storage {{storage}}"
    " --endpoint {endpoint} --threads {threads} --interval-ms {interval_ms}"
)
FAULTS_OF = {
    "crash": {"kill", "restart"},
    "churn": set(),
    "storage": {"server-error", "slow-storage", "throttled", "timeout-applied", "timeout-lost"},
    "directory": {"server-error", "slow-storage", "throttled", "timeout-applied", "timeout-lost"},
    "pause": {"pause", "kill", "restart"},
    "hostile": {"kill", "restart"},
    "second-server": {"second-server", "kill", "restart"},
    "storage-wire": set(WORDS.values()),
}
AIMED = {
    "crash": {"kill before a put of a marker file", "kill after a put of a marker file"},
    "pause": {"pause before a put of a marker file", "pause after a put of a marker file"},
    "storage": {"request limits exceeded", *(trouble.name for trouble in TROUBLES if trouble.sure)},
    "directory": {trouble.name for trouble in TROUBLES if trouble.sure},
    "storage-wire": {f"{word} seen" for word in WORDS.values()},
}
HONEST = ProbedCapabilities(
    put_if_absent=True, put_if_unchanged=True, list_after_put=True, read_after_delete=True, tries={},
    seen=dict.fromkeys(("put_if_absent", "put_if_unchanged", "list_after_put", "read_after_delete"), "kept"),
)  # fmt: skip


def campaign(
    tmp_path: Path, *, start: str = START, budget_s: float = 5.0, seed: int = 1, kinds: tuple[str, ...] = KINDS,
    reader: str = "", endpoint: Endpoint | None = None, identity: bool = False, dir_format: str = "",
    histories: list[History] | None = None, faults_of: dict[str, set[str]] | None = None,
) -> Campaign:  # fmt: skip
    shown = histories if histories is not None else []
    request = CampaignRequest(
        target=HttpTarget(startup_s=30.0, kinds=kinds),
        modes=("timeline",),
        storages=("s3",),
        budget_s=budget_s,
        seed=seed,
        profile=load_profile("http"),
        server=ServerOptions(start=start, reader=reader, dir_format=dir_format, identity=identity, endpoint=endpoint),
        report=tmp_path,
    )
    done = run_campaign(request, lambda line: None, on_run=shown.append)
    for kind in {history.header.options["round"] for history in shown}:
        assert (faults_of or FAULTS_OF)[kind] <= done.statistics.faults.keys(), (
            f"a round of kind {kind} without its faults"
        )
    return done


def accused(done: Campaign) -> dict[str, str]:
    return {failure.guarantee: failure.message for failure in done.failures}


@pytest.mark.parametrize("kind", FAULTS_OF)
def test_the_correct_server_is_not_accused_and_every_fault_fires(tmp_path: Path, kind: str) -> None:
    if kind == "storage-wire":
        assert not missing(), missing()
    histories: list[History] = []
    done = campaign(tmp_path, kinds=(kind,), seed=7, histories=histories)
    assert accused(done) == {}
    assert done.not_reached == ()
    assert {name for name in AIMED.get(kind, ()) if not done.statistics.reached.get(name)} == set()
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert {name for name in ("G1", "G2", "G3", "G4", "G5", "G6", "G8", "G9", "G11") if rows[name].judged == 0} == set()
    assert kind != "directory" or rows["G7"].judged > 0
    assert kind != "churn" or rows["G10"].judged > 0
    assert kind != "hostile" or rows["G12"].judged >= len(REFUSED)
    for history in histories:
        assert history.header.storage == "s3" and history.header.witness == "effects"
        servers = {event.process for event in history.events if event.operation == "started"}
        writers = {event.process for event in history.events if event.kind == "effect"}
        assert writers and writers <= servers, "an effect carries the server life that had it"


def test_what_the_honesty_probe_found_is_in_verdict_and_report(tmp_path: Path) -> None:
    outcome = judge_campaign(campaign(tmp_path, kinds=("churn",)), load_profile("http"), None, tmp_path, ("verify",))
    content = outcome.to_dict()
    assert content["s3"]["put_if_unchanged"] is True
    assert "put_if_unchanged: yes" in render_page(outcome)
    assert content["s3"]["seen"]["put_if_unchanged"] in render_page(outcome)


@pytest.mark.parametrize(
    ("broken", "kind", "guarantee", "budget_s"),
    [
        ("ack-before-flush", "crash", "G1", 5.0),
        ("memory-only", "crash", "G3", 5.0),
        ("exists-while-flushing", "crash", "G2", 5.0),
        ("swallows-failure", "storage", "G1", 5.0),
        ("stays-busy", "storage", "G6", 20.0),
        ("loses-workers", "directory", "G7", 20.0),
        ("forgets-requests", "churn", "G5", 5.0),
    ],
)
def test_a_broken_server_is_accused_of_what_it_breaks(
    tmp_path: Path, broken: str, kind: str, guarantee: str, budget_s: float
) -> None:
    done = campaign(
        tmp_path,
        start=f"{START} --broken {broken}",
        kinds=(kind,),
        budget_s=budget_s,
        identity=broken == "forgets-requests",
        # Once its files stay busy it sends nothing that other troubles could meet.
        faults_of={kind: {"server-error"}} if broken in ("stays-busy", "loses-workers") else None,
    )
    assert guarantee in accused(done), accused(done)
    failure = next(failure for failure in done.failures if failure.guarantee == guarantee)
    assert failure.evidence
    assert failure.history.header.options["round"] == kind


def test_a_server_that_honours_the_identity_of_requests_is_not_accused(tmp_path: Path) -> None:
    done = campaign(tmp_path, kinds=("churn", "crash"), budget_s=6.0, identity=True)
    assert accused(done) == {}
    assert {row.id: row for row in done.statistics.rows(load_profile("http"))}["G5"].judged > 20


def test_a_fault_that_was_declared_and_did_not_fire_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marker_sim.worlds.http.fault_injector.AIMED_MAX_S", 0.3)
    done = campaign(tmp_path, start=f"{START} --broken stores-nothing", kinds=("crash",), budget_s=4.0)
    missed = [what for what in done.not_reached if what.startswith("kill before a put of a marker file (declared in ")]
    assert missed, done.not_reached
    assert "G1" in accused(done)


def test_stored_names_of_another_format_come_from_a_reader_command(tmp_path: Path) -> None:
    histories: list[History] = []
    reader = f"{PYTHON} {shlex.quote(str(SERVERS / 'stored_names.py'))} {{dir}}"
    done = campaign(tmp_path, kinds=("crash",), reader=reader, dir_format="s3", histories=histories)
    assert accused(done) == {}
    assert {history.header.layout for history in histories} == {"names"}
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert rows["G3"].judged > 50
    assert rows["G8"].verdict == "not-applicable"


def test_an_endpoint_of_ones_own_is_read_and_left_as_it_was(tmp_path: Path) -> None:
    histories: list[History] = []
    with S3Front(Interceptor(Recorder(), lambda trigger, call: None), bucket="mine") as store:
        endpoint = Endpoint(url=store.endpoint, bucket="mine", access_key="me", secret_key="secret")
        done = campaign(tmp_path, endpoint=endpoint, kinds=("crash", *NEED_THE_FRONT), histories=histories)
        assert store.objects() == {}
    assert accused(done) == {}
    assert {history.header.options["round"] for history in histories} == {"crash"}
    assert {history.header.witness for history in histories} == {"reads"}
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert {row.id for row in rows.values() if row.verdict == "inconclusive"} <= {"G7", "G10", "G12"}
    assert (rows["G1"].read_at_ack_share or 0) > 0.5
    assert any(what.startswith("storage faults") for what in done.left_out)
    assert done.s3 is not None and done.s3["list_after_put"] is True


def test_a_broken_server_is_accused_on_an_endpoint_of_ones_own(tmp_path: Path) -> None:
    with S3Front(Interceptor(Recorder(), lambda trigger, call: None), bucket="mine") as store:
        endpoint = Endpoint(url=store.endpoint, bucket="mine", access_key="me", secret_key="secret")
        start = f"{START} --broken ack-before-flush"
        done = campaign(tmp_path, start=start, endpoint=endpoint, kinds=("crash",), budget_s=6.0)
    assert "G1" in accused(done), accused(done)


def test_a_store_that_lies_is_the_kits_surroundings_and_one_without_conditions_is_not() -> None:
    assert honest(HONEST, "here") is HONEST
    lying = replaced(list_after_put=False, seen="a listing asked for after a put did not show the key")
    with pytest.raises(HarnessError, match=r"here does not keep list-after-put \(a listing asked for"):
        honest(lying, "here")
    plain = replaced(put_if_unchanged=False, seen="a put was answered 501: the store does not know the condition")
    assert honest(plain, "here") is plain


def test_a_store_without_conditions_has_a_name_and_promises_of_its_own() -> None:
    plain = replaced(put_if_unchanged=False, seen="a put was answered 501: the store does not know the condition")
    assert (name_of(HONEST), name_of(plain)) == ("s3", "s3-unconditional")
    profile = load_profile("http")
    assert profile.promise("G3", "timeline", "s3", "second-server").promised
    unkept = profile.promise("G3", "timeline", "s3-unconditional", "second-server")
    assert not unkept.promised and "honesty probe" in unkept.source
    assert profile.promise("G3", "timeline", "s3-unconditional", "restart").promised


def test_a_server_that_exits_when_storage_fails_is_accused_and_not_the_kit(tmp_path: Path) -> None:
    start = f"sh -c '{START} & server=$!; sleep 3; kill -9 $server'"
    done = campaign(tmp_path, start=start, kinds=("storage",), budget_s=6.0, faults_of={"storage": set()})
    assert "exited by itself" in accused(done)["G6"]


def replaced(seen: str, **promise: bool) -> ProbedCapabilities:
    given = {name: getattr(HONEST, name) for name in HONEST.seen} | promise
    return ProbedCapabilities(**given, tries={}, seen={**HONEST.seen, **dict.fromkeys(promise, seen)})


def test_faults_of_the_real_store_count_under_the_classes_of_the_simulated_one() -> None:
    assert all(trouble.kind.row.family == "storage" and "s3" in trouble.kind.row.storages for trouble in TROUBLES)
    assert {FAULT_CLASS[trouble.kind.value] for trouble in TROUBLES} == {"storage"}


def test_a_history_of_a_round_is_judged_again_with_the_same_findings(tmp_path: Path) -> None:
    histories: list[History] = []
    done = campaign(tmp_path, start=f"{START} --broken memory-only", kinds=("crash",), histories=histories)
    breaches = sum(len(finding.breaches) for history in histories for finding in judge(history))
    assert breaches == sum(row.violations for row in done.statistics.rows(load_profile("http"))) > 0
