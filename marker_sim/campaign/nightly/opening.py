"""The opening of a night, new or resumed: its request compared with what the directory holds, and its stages.

A stage draws units from its streams. Shares are of the whole budget; the share of a stage that is not possible goes to
the others, and the rest at the end goes to the swarm, which never ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from marker_sim import __version__
from marker_sim.campaign.nightly.ledger import SCHEMA, Ledger, read_lines
from marker_sim.campaign.nightly.totals import Totals
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.surroundings.requirements import lacking
from marker_sim.targets.jvm.reference_spark import BOTH, on_spark
from marker_sim.targets.table import DEFAULT, parse_target
from marker_sim.targets.target import CampaignRequest, ServerOptions
from marker_sim.worlds.door.available import refused

SHARES = {"swarm": 50.0, "exhaustive": 20.0, "real": 20.0, "spark": 10.0}
FOREIGN_SHARES = {"foreign": 100.0}  # For systems whose runs take real time.
FOREIGN = {"foreign-local": "local", "foreign-s3": "s3"}
STREAMS = {
    "swarm": ("swarm",),
    "exhaustive": ("exhaustive",),
    "real": ("real-local", "real-s3"),
    "spark": ("spark",),
    "foreign": tuple(FOREIGN),
}
_PARTS = {"real-local": "real processes on local", "real-s3": "real processes on s3"}
# The stages that a night on Spark leaves out, with the reason.
ON_SPARK = dict.fromkeys(
    (*STREAMS["real"], *STREAMS["spark"]),
    "executors run plans in the simulated world alone; a night without --spark-master has it",
)
# A cluster of JVMs needs the whole machine; units of all other stages may run at once.
ALONE = frozenset({"spark"})
# With less time, starting would use up the share of the stage.
LEAST_S = {"swarm": 0.0, "exhaustive": 0.0, "real": 2.0, "spark": 240.0, "foreign": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyStage:
    """One stretch of a night with its share of the budget.

    end_s: on the night's clock.
    streams: those that are possible here.
    """

    name: str
    end_s: float
    streams: tuple[str, ...]


def parse_stages(text: str) -> dict[str, float]:
    """Shares by stage from `swarm,real` or `swarm:60,real:40`; UsageError for anything else.

    Only a system whose plans run in the simulated world has stages to choose from.

    A stage without a number keeps its usual share; shares are relative to their sum.
    """
    shares: dict[str, float] = {}
    for word in text.split(","):
        name, colon, number = word.strip().partition(":")
        try:
            share = float(number) if colon else SHARES.get(name, 0.0)
        except ValueError:
            share = -1.0
        if name not in SHARES or name in shares or not 0 < share <= 1e6:
            accepted = ", ".join(SHARES)
            raise UsageError(
                f"--stages was given {text!r}; write some of {accepted}, each once and with a share above 0 if you"
                " like, for example swarm:60,real:40"
            )
        shares[name] = share
    return {name: shares[name] for name in SHARES if name in shares}


def schedule(
    shares: Mapping[str, float], budget_s: float, missing: Mapping[str, str]
) -> tuple[tuple[NightlyStage, ...], tuple[str, ...]]:
    """The stages in order with their ends, and a sentence for each stage or stream left out.

    missing: by stream, why it cannot run here and how it could.
    """
    left_out: list[str] = []
    possible: dict[str, tuple[str, ...]] = {}
    total = sum(shares.values())
    for name, share in shares.items():
        streams = tuple(stream for stream in STREAMS[name] if stream not in missing)
        left_out += [f"{stream}: {missing[stream]}" for stream in STREAMS[name] if stream in missing]
        own_s = budget_s * share / total
        if streams and own_s < LEAST_S[name]:
            left_out.append(f"{name}: its share of {own_s:.0f} s is too short, it needs {LEAST_S[name]:.0f} s")
        elif streams:
            possible[name] = streams
    stages, end_s = [], 0.0
    total = sum(shares[name] for name in possible)
    for name, streams in possible.items():
        end_s += budget_s * shares[name] / total
        stages.append(NightlyStage(name=name, end_s=end_s, streams=streams))
    return tuple(stages), tuple(left_out)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRequest:
    """The options of `chaos`.

    sut, profile, seed, stages, server: None for those of the directory, or the defaults.
    profile: a shipped name or an absolute path.
    server: how a foreign server is started.
    storages: of a system whose runs take real time, () for those of the directory.
    spark_master: whose executors do the units, None for processes on this machine.
    jobs: how many of these, or of executors' cores, 0 for all of a cluster.
    """

    directory: Path
    budget_s: float
    sut: str | None
    seed: int | None
    jobs: int
    stages: dict[str, float] | None
    new_night: bool = False
    server: ServerOptions | None = None
    storages: tuple[str, ...] = ()
    profile: str | None = None
    spark_master: str | None = None


def check_place(sut: str, request: NightRequest) -> None:
    """UsageError when a Spark cluster is requested for a system that runs in real time."""
    if request.spark_master is not None and not parse_target(sut).can.plans:
        raise UsageError(
            f"--spark-master was given with --sut {sut}, which is started on this machine and runs in real time; leave"
            " --spark-master out"
        )


def opened(ledger: Ledger, request: NightRequest, draw_seed: Callable[[], int]) -> Totals:
    """The totals of the ledger, with the night that will run as its last."""
    totals = Totals().add_all(read_lines(request.directory))
    place = request.directory
    if ledger.empty:
        sut = request.sut or DEFAULT
        seed = draw_seed() if request.seed is None else request.seed
        profile = request.profile or parse_target(sut).can.profile
        words = {"schema": SCHEMA, "sut": sut, "profile": profile, "seed": seed}
        own = {} if request.server is None else {"server": request.server.to_dict(), "storages": request.storages}
        totals.add(ledger.append("chaos", **words, **own))
    if request.sut is not None and not same_system(request.sut, totals.sut):
        raise UsageError(f"{place} belongs to --sut {totals.sut}; give another --dir for {request.sut}")
    if request.profile not in (None, totals.profile):
        raise UsageError(
            f"{place} is judged by --profile {totals.profile}; give another --dir for --profile {request.profile}"
        )
    if request.seed not in (None, totals.seed):
        raise UsageError(
            f"{place} began with --seed {totals.seed} and goes on from there, so that no plan is run twice; leave"
            " --seed out, or give another --dir"
        )
    unfinished = bool(totals.nights) and totals.night.state != "ended"
    if unfinished and (request.new_night or totals.night.seconds >= request.budget_s):
        totals.add(ledger.append("end", night=totals.night.number, clock_s=totals.night.seconds))
        unfinished = False
    server = request.server or totals.server
    other = (request.sut or totals.sut, server.to_dict()) != (totals.sut, totals.server.to_dict())
    if unfinished:
        if other:
            raise UsageError(
                f"night {totals.night.number} in {place} is not over and is of --sut {totals.sut}, started in another"
                " way; give what it began with, or --new-night"
            )
        if request.stages not in (None, totals.night.stages):
            raise UsageError(
                f"night {totals.night.number} in {place} is not over and has other --stages; leave --stages out, or"
                " give --new-night"
            )
        totals.add(ledger.append("resume", night=totals.night.number, clock_s=totals.night.seconds))
        return totals
    totals.sut, totals.server = request.sut or totals.sut, request.server or totals.server
    totals.storages = request.storages or totals.storages
    target = parse_target(totals.sut)
    usual = SHARES if target.can.plans else FOREIGN_SHARES
    shares = request.stages or (totals.night.stages if totals.nights else dict(usual))
    stages, left_out = schedule(shares, request.budget_s, missing(totals, request))
    if not stages and not target.can.plans:
        raise HarnessError(f"nothing can be run against {totals.sut}: {'; '.join(left_out)}")
    number = len(totals.nights) + 1
    own = {} if target.can.plans else {"server": totals.server.to_dict(), "storages": totals.storages}
    words = {"budget_s": request.budget_s, "stages": shares, "missing": left_out, "kit_version": __version__}
    words |= {"sut": totals.sut, "sut_version": target.version}
    words |= {} if request.spark_master is None else {"spark_master": request.spark_master, "tables": True}
    totals.add(ledger.append("night", night=number, clock_s=0.0, **words, **own))
    return totals


def same_system(one: str, other: str) -> bool:
    """Whether two systems may share a directory: versions of one server, whose runs take real time."""
    if one == other:
        return True
    target, known = parse_target(one), parse_target(other)
    return not target.can.plans and type(target) is type(known)


def request_on(sut: str, storage: str, server: ServerOptions, profile: str, seed: int, report: Path) -> CampaignRequest:
    """The request for a system in real time on one storage."""
    target = parse_target(sut)
    return CampaignRequest(
        target=target,
        modes=target.can.modes,
        storages=target.can.storages[storage],
        seed=seed,
        profile=load_profile(profile),
        server=server,
        report=report,
    )


def missing(totals: Totals, request: NightRequest) -> dict[str, str]:
    """The streams that cannot run here, with the reason; fetches what the others need."""
    if request.spark_master is not None:
        return ON_SPARK
    if not parse_target(totals.sut).can.plans:
        left_out = {stream: "--storage leaves it out" for stream in FOREIGN if FOREIGN[stream] not in totals.storages}
        asked = {stream: storage for stream, storage in FOREIGN.items() if stream not in left_out}
        return left_out | _unprepared(totals, totals.sut, asked)
    found = {stream: f"it needs {why}" for stream, part in _PARTS.items() if (why := lacking(part))}
    if why := refused():
        for stream in ("real-local", "spark"):  # The plans of the second are of both storages.
            found.setdefault(stream, f"storage calls on local files cannot be watched here: {why}")
    return _unprepared(totals, on_spark(totals.sut), {"spark": BOTH}) | found


def _unprepared(totals: Totals, sut: str, storages: Mapping[str, str]) -> dict[str, str]:
    """Why a system is not ready for streams. storages: by stream. UsageError for that of the night."""
    found, scratch = dict[str, str](), Path(tempfile.gettempdir())
    for stream, storage in storages.items():
        request = request_on(sut, storage, totals.server, totals.profile, 0, scratch)
        try:
            request.target.prepare(request, lambda line: None)
        except HarnessError as error:
            found[stream] = str(error)
        except UsageError as error:
            if sut == totals.sut:
                raise
            found[stream] = str(error)  # The other stages may suit it.
    return found
