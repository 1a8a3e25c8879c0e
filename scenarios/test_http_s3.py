"""`--sut http --storage s3`, end to end: every effect in order at the kit's front, and other S3 endpoints.

Every scenario says which faults it needs and fails when they did not happen.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import FAULT_CLASS
from marker_sim.history import History
from marker_sim.judges import judge
from marker_sim.unusual_names import REFUSED
from marker_sim.worlds.http import s3_worlds
from properties.faces.judges import load_profile
from properties.faces.outcome import Campaign
from properties.faces.report import judge_campaign, render_page
from properties.faces.search import CONFINED_FAULTS
from properties.faces.targets import CampaignRequest, HttpTarget, ServerOptions
from properties.faces.worlds import (
    OUTSIDE,
    ROUNDS,
    Endpoint,
    Interceptor,
    ProbedCapabilities,
    Recorder,
    S3Front,
    probe_s3,
)
from properties.volume import CI_ONLY, NIGHTLY, volume
from scenarios.stored_plans import caught
from scenarios.test_http import campaign

SERVERS = Path(__file__).parent / "servers"
PYTHON = f"{shlex.quote(sys.executable)} -S"
START = (
    f"{PYTHON} {shlex.quote(str(SERVERS / 'marker_server.py'))} --port {{port}} --storage {{storage}}"
    " --endpoint {endpoint} --threads {threads} --interval-ms {interval_ms}"
)
BUDGET_S = 120.0  # That no campaign of a few plans comes near to.
HONEST = ProbedCapabilities(
    put_if_absent=True, put_if_unchanged=True, list_after_put=True, read_after_delete=True, tries={},
    seen=dict.fromkeys(("put_if_absent", "put_if_unchanged", "list_after_put", "read_after_delete"), "kept"),
)  # fmt: skip


def asked(
    tmp_path: Path, *, start: str = START, runs: int = 2, seed: int = 1, reader: str = "",
    endpoint: Endpoint | None = None, identity: bool = False, dir_format: str = "",
) -> CampaignRequest:  # fmt: skip
    return CampaignRequest(
        target=HttpTarget(startup_s=30.0),
        modes=("timeline",),
        storages=("s3",),
        budget_s=BUDGET_S,
        runs=runs,
        seed=seed,
        profile=load_profile("http"),
        shrinking=False,
        server=ServerOptions(start=start, reader=reader, dir_format=dir_format, identity=identity, endpoint=endpoint),
        report=tmp_path,
    )


def accused(done: Campaign) -> dict[str, str]:
    return {failure.guarantee: failure.message for failure in done.failures}


@CI_ONLY
def test_the_correct_server_is_not_accused(tmp_path: Path) -> None:
    histories: list[History] = []
    done = campaign(asked(tmp_path, seed=7, runs=volume(8, quick=2)), histories)
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
    pytest.param("memory-only", "G3", marks=CI_ONLY),
    ("exists-while-flushing", "G2"),
    ("swallows-failure", "G1"),
    ("forgets-requests", "G5"),
]
if NIGHTLY:  # What test_http_broken.py shows on a disk by day.
    BROKEN += [("ack-before-flush", "G1"), ("stays-busy", "G6"), ("loses-workers", "G7")]


@pytest.mark.parametrize(("broken", "guarantee"), BROKEN)
def test_a_broken_server_is_accused_of_what_it_breaks(tmp_path: Path, broken: str, guarantee: str) -> None:
    request = asked(tmp_path, start=f"{START} --broken {broken}", identity=broken == "forgets-requests")
    found = caught(f"{broken}-s3", guarantee, replace(request, runs=None))
    assert found is not None and found.evidence


def test_a_campaign_says_of_a_broken_server_what_its_histories_say_when_they_are_judged_again(tmp_path: Path) -> None:
    histories: list[History] = []
    done = campaign(asked(tmp_path, start=f"{START} --broken ack-before-flush", runs=volume(2, quick=1)), histories)
    assert "G1" in accused(done), accused(done)
    again = (finding for history in histories for finding in judge(history, frozenset({"G1"})))
    rows = [row for row in done.statistics.rows(load_profile("http")) if row.id == "G1"]
    assert sum(len(finding.breaches) for finding in again) == sum(row.violations for row in rows) > 0


def test_a_server_that_honours_the_identity_of_requests_is_not_accused(tmp_path: Path) -> None:
    done = campaign(asked(tmp_path, identity=True, runs=volume(6, quick=1)))
    assert accused(done) == {}
    assert {row.id: row for row in done.statistics.rows(load_profile("http"))}["G5"].judged > 0


@CI_ONLY
def test_stored_names_of_another_format_come_from_a_reader_command(tmp_path: Path) -> None:
    histories: list[History] = []
    reader = f"{PYTHON} {shlex.quote(str(SERVERS / 'stored_names.py'))} {{dir}}"
    done = campaign(asked(tmp_path, reader=reader, dir_format="s3"), histories)
    assert accused(done) == {}
    assert {history.header.layout for history in histories} == {"names"}
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert rows["G3"].judged > 20
    assert rows["G8"].verdict == "not-applicable"


def test_an_endpoint_of_ones_own_is_read_and_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_worlds, "probe_s3", partial(probe_s3, rounds=volume(ROUNDS)))
    histories: list[History] = []
    with S3Front(Interceptor(Recorder(), lambda trigger, call: None), bucket="mine") as store:
        endpoint = Endpoint(url=store.endpoint, bucket="mine", access_key="me", secret_key="secret")
        done = campaign(asked(tmp_path, endpoint=endpoint, runs=volume(6, quick=1)), histories)
        assert store.objects() == {}
    assert accused(done) == {}
    assert {history.header.witness for history in histories} == {"reads"}
    rows = {row.id: row for row in done.statistics.rows(load_profile("http"))}
    assert {row.id for row in rows.values() if row.verdict == "inconclusive"} <= {"G2", "G5", "G7", "G10", "G11", "G12"}
    assert (rows["G1"].read_at_ack_share or 0) > 0.5
    assert any(what.startswith("storage faults") for what in done.left_out)
    assert done.s3 is not None and done.s3["list_after_put"] is True


@CI_ONLY
def test_a_broken_server_is_accused_on_an_endpoint_of_ones_own(tmp_path: Path) -> None:
    with S3Front(Interceptor(Recorder(), lambda trigger, call: None), bucket="mine") as store:
        endpoint = Endpoint(url=store.endpoint, bucket="mine", access_key="me", secret_key="secret")
        start = f"{START} --broken ack-before-flush"
        done = campaign(asked(tmp_path, start=start, endpoint=endpoint, runs=2))
    assert "G1" in accused(done), accused(done)


def test_a_store_that_lies_is_the_kits_surroundings_and_one_without_conditions_is_not() -> None:
    assert HONEST.honest("here") is HONEST
    lying = replaced(list_after_put=False, seen="a listing asked for after a put did not show the key")
    with pytest.raises(HarnessError, match=r"here does not keep list-after-put \(a listing asked for"):
        lying.honest("here")
    plain = replaced(put_if_unchanged=False, seen="a put was answered 501: the store does not take the condition")
    assert plain.honest("here") is plain


def test_a_store_without_conditions_has_a_name_and_promises_of_its_own() -> None:
    plain = replaced(put_if_unchanged=False, seen="a put was answered 501: the store does not take the condition")
    assert (HONEST.header()["storage"], plain.header()["storage"]) == ("s3", "s3-unconditional")
    profile = load_profile("http")
    assert profile.promise("G3", "timeline", "s3", "second-server").promised
    unkept = profile.promise("G3", "timeline", "s3-unconditional", "second-server")
    assert not unkept.promised and "honesty probe" in unkept.source
    assert profile.promise("G3", "timeline", "s3-unconditional", "restart").promised


def test_a_server_that_exits_when_storage_fails_is_accused_and_not_the_kit(tmp_path: Path) -> None:
    # It may take two seconds to answer its first request, and three runs may be over when it ends.
    start = f"""sh -c '"$@" & server=$!; sleep 3; kill -9 $server' sh {START}"""
    done = campaign(asked(tmp_path, start=start, runs=5))
    assert "G6" in accused(done) and not done.trouble


def replaced(seen: str, **promise: bool) -> ProbedCapabilities:
    given = {name: getattr(HONEST, name) for name in HONEST.seen} | promise
    return ProbedCapabilities(**given, tries={}, seen={**HONEST.seen, **dict.fromkeys(promise, seen)})


def test_faults_of_the_real_store_count_under_the_classes_of_the_simulated_one() -> None:
    kinds = {kind for kind, _, _ in CONFINED_FAULTS["s3"]}
    assert all(kind.row.family == "storage" and "s3" in kind.row.storages for kind in kinds)
    assert {FAULT_CLASS[kind.value] for kind in kinds} == {"storage"}
