"""`--sut http --storage s3`, end to end: every effect in order at the kit's front, and endpoints of somebody else's.

Every scenario says which faults it needs and fails when they did not happen.
"""

from __future__ import annotations

import os
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
from marker_sim.odd_names import REFUSED
from marker_sim.report.page import render_page
from marker_sim.report.verdict import judge_campaign
from marker_sim.search.merged_plans import CONFINED_FAULTS
from marker_sim.targets.http import HttpTarget
from marker_sim.targets.target import CampaignRequest, ServerOptions
from marker_sim.worlds.http.plan_faults import OUTSIDE
from marker_sim.worlds.http.s3_capabilities import honest, name_of
from marker_sim.worlds.http.world import Endpoint
from marker_sim.worlds.interceptor import Interceptor
from marker_sim.worlds.recorder import Recorder
from marker_sim.worlds.s3_front import ProbedCapabilities, S3Front

SERVERS = Path(__file__).parent / "servers"
PYTHON = f"{shlex.quote(sys.executable)} -S"
START = (
    f"{PYTHON} {shlex.quote(str(SERVERS / 'marker_server.py'))} --port {{port}} --storage {{storage}}"
    " --endpoint {endpoint} --threads {threads} --interval-ms {interval_ms}"
)
HONEST = ProbedCapabilities(
    put_if_absent=True, put_if_unchanged=True, list_after_put=True, read_after_delete=True, tries={},
    seen=dict.fromkeys(("put_if_absent", "put_if_unchanged", "list_after_put", "read_after_delete"), "kept"),
)  # fmt: skip


def campaign(
    tmp_path: Path, *, start: str = START, budget_s: float = 5.0, seed: int = 1, reader: str = "",
    endpoint: Endpoint | None = None, identity: bool = False, dir_format: str = "",
    histories: list[History] | None = None, wanted: str = "",
) -> Campaign:  # fmt: skip
    """wanted: the guarantee whose first violation ends it."""
    shown = histories if histories is not None else []
    request = CampaignRequest(
        target=HttpTarget(startup_s=30.0),
        modes=("timeline",),
        storages=("s3",),
        budget_s=budget_s,
        seed=seed,
        profile=load_profile("http"),
        guarantees=frozenset({wanted}) if wanted else None,
        stop_at_first=bool(wanted),
        shrinking=False,
        server=ServerOptions(start=start, reader=reader, dir_format=dir_format, identity=identity, endpoint=endpoint),
        report=tmp_path,
    )
    return run_campaign(request, lambda line: None, on_run=shown.append)


def accused(done: Campaign) -> dict[str, str]:
    return {failure.guarantee: failure.message for failure in done.failures}


def test_the_correct_server_is_not_accused(tmp_path: Path) -> None:
    histories: list[History] = []
    done = campaign(tmp_path, seed=7, histories=histories, budget_s=12.0)
    assert accused(done) == {}
    assert done.not_reached == ()
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    wanted = {"G1", "G3", "G4", "G6", "G8", "G9"}  # In the few plans of some seconds.
    assert {name for name in wanted if not rows[name].judged} == set()
    assert rows["G12"].judged >= 0.8 * len(REFUSED), "all but those that met a server in trouble"
    for history in histories:
        assert history.header.storage == "s3" and history.header.witness == "effects"
        servers = {event.process for event in history.events if event.operation == "started"}
        effects = (event for event in history.events if event.kind == "effect")
        writers = {event.process for event in effects if not event.process.startswith(OUTSIDE)}
        assert writers and writers <= servers, "an effect carries the server life that had it"
    outcome = judge_campaign(done, load_profile("http"), None, tmp_path, ("verify",))
    content, page = outcome.to_dict(), render_page(outcome)
    assert content["s3"]["put_if_unchanged"] is True and "put_if_unchanged: yes" in page
    assert content["s3"]["seen"]["put_if_unchanged"] in page, "what the honesty probe found"


BROKEN = [
    ("memory-only", "G3", 120.0),
    ("exists-while-flushing", "G2", 120.0),
    ("swallows-failure", "G1", 120.0),
    ("forgets-requests", "G5", 120.0),
]
if os.environ.get("MARKER_SIM_PROFILE") == "nightly":  # What test_http.py shows on a disk by day.
    BROKEN += [
        ("ack-before-flush", "G1", 120.0),
        ("stays-busy", "G6", 120.0),
        ("loses-workers", "G7", 120.0),
    ]


@pytest.mark.parametrize(("broken", "guarantee", "budget_s"), BROKEN)
def test_a_broken_server_is_accused_of_what_it_breaks_and_again_when_its_histories_are_judged_again(
    tmp_path: Path, broken: str, guarantee: str, budget_s: float
) -> None:
    histories: list[History] = []
    done = campaign(
        tmp_path,
        start=f"{START} --broken {broken}",
        budget_s=budget_s,
        wanted=guarantee,
        histories=histories,
        identity=broken == "forgets-requests",
    )
    assert guarantee in accused(done), accused(done)
    failure = next(failure for failure in done.failures if failure.guarantee == guarantee)
    assert failure.evidence
    assert failure.plan is not None
    again = (finding for history in histories for finding in judge(history, frozenset({guarantee})))
    rows = done.statistics.rows(load_profile("http"))
    assert sum(len(finding.breaches) for finding in again) == sum(row.violations for row in rows) > 0


def test_a_server_that_honours_the_identity_of_requests_is_not_accused(tmp_path: Path) -> None:
    done = campaign(tmp_path, budget_s=12.0, identity=True)
    assert accused(done) == {}
    assert {row.id: row for row in done.statistics.rows(load_profile("http"))}["G5"].judged > 0


def test_stored_names_of_another_format_come_from_a_reader_command(tmp_path: Path) -> None:
    histories: list[History] = []
    reader = f"{PYTHON} {shlex.quote(str(SERVERS / 'stored_names.py'))} {{dir}}"
    done = campaign(tmp_path, reader=reader, dir_format="s3", histories=histories)
    assert accused(done) == {}
    assert {history.header.layout for history in histories} == {"names"}
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert rows["G3"].judged > 20
    assert rows["G8"].verdict == "not-applicable"


def test_an_endpoint_of_ones_own_is_read_and_left_as_it_was(tmp_path: Path) -> None:
    histories: list[History] = []
    with S3Front(Interceptor(Recorder(), lambda trigger, call: None), bucket="mine") as store:
        endpoint = Endpoint(url=store.endpoint, bucket="mine", access_key="me", secret_key="secret")
        done = campaign(tmp_path, endpoint=endpoint, budget_s=15.0, histories=histories)
        assert store.objects() == {}
    assert accused(done) == {}
    assert {history.header.witness for history in histories} == {"reads"}
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert {row.id for row in rows.values() if row.verdict == "inconclusive"} <= {"G2", "G5", "G7", "G10", "G11", "G12"}
    assert (rows["G1"].read_at_ack_share or 0) > 0.5
    assert any(what.startswith("storage faults") for what in done.left_out)
    assert done.s3 is not None and done.s3["list_after_put"] is True


def test_a_broken_server_is_accused_on_an_endpoint_of_ones_own(tmp_path: Path) -> None:
    with S3Front(Interceptor(Recorder(), lambda trigger, call: None), bucket="mine") as store:
        endpoint = Endpoint(url=store.endpoint, bucket="mine", access_key="me", secret_key="secret")
        start = f"{START} --broken ack-before-flush"
        done = campaign(tmp_path, start=start, endpoint=endpoint, budget_s=6.0)
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
    start = f"sh -c '{START} & server=$!; sleep 3; kill -9 $server'"  # It may take two to answer its first request.
    done = campaign(tmp_path, start=start, budget_s=12.0)
    assert "G6" in accused(done) and not done.trouble


def replaced(seen: str, **promise: bool) -> ProbedCapabilities:
    given = {name: getattr(HONEST, name) for name in HONEST.seen} | promise
    return ProbedCapabilities(**given, tries={}, seen={**HONEST.seen, **dict.fromkeys(promise, seen)})


def test_faults_of_the_real_store_count_under_the_classes_of_the_simulated_one() -> None:
    kinds = {kind for kind, _, _ in CONFINED_FAULTS["s3"]}
    assert all(kind.row.family == "storage" and "s3" in kind.row.storages for kind in kinds)
    assert {FAULT_CLASS[kind.value] for kind in kinds} == {"storage"}
