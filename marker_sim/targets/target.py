"""What every system under test has in common: its name, what can be requested of it, and the source of its runs.

    --sut ─► table.parse_target ─► Target ─► CampaignRequest ─► campaign/engine.py ─► Campaign

A target is one module of this package and one row in table.py; nothing else knows it by name. Its runs are plans of a
seed: those of the `System` that it loads are simulated, others it draws and plays itself in real time.
The engine judges, counts and keeps both alike.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from marker_sim.judges.baselines.baseline import Known
    from marker_sim.judges.promises.profiles import Profile
    from marker_sim.outcome.failure import Kind
    from marker_sim.outcome.result import Campaign
    from marker_sim.plan import Plan
    from marker_sim.system import System
    from marker_sim.worlds.http.world import Endpoint
    from marker_sim.worlds.played import PlayedRun

OF_SERVERS = dict.fromkeys(
    (
        "start",
        "reader",
        "dir_format",
        "identity",
        "batch_threads",
        "s3_endpoint",
        "s3_bucket",
        "s3_access_key",
        "s3_secret_key",
    ),
    "; it belongs to --sut http, so leave it out",
)
OF_WRITERS = dict.fromkeys(
    ("writers", "orders", "services"), "; it belongs to --sut hudi-java:VERSION, so leave it out"
)
REFUSED = OF_SERVERS | OF_WRITERS
SERVER_OPTIONS = tuple(REFUSED)
SERVERS = "real servers"  # The world of timeline servers.
TABLES = "Spark"  # The world of targets that write tables.
JOBS = "jobs of Spark"  # The world of the write client on Spark.
REAL_STORAGES: Mapping[str, tuple[str, ...]] = {"local": ("local",), "s3": ("s3",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCapabilities:
    """The requests and options that a system supports.

    profile: what is held against it unless `--profile` says otherwise.
    modes: the marker modes that it has.
    storages: what each word of `--storage` stands for; the first word is taken when none is given.
    plans: whether its runs are simulated, so that they can be counted and spread over processes.
    refuses: the options of `SERVER_OPTIONS` that it does not take, and how the sentence about each goes on.
    world: where its runs take place; `--against` takes a system of the same world.
    alone: whether a run takes a minute, and the machine for itself.
    """

    profile: str
    world: str = "the simulated world"
    alone: bool = False
    modes: tuple[str, ...] = ("direct", "timeline")
    storages: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: REAL_STORAGES)
    plans: bool = False
    refuses: Mapping[str, str] = field(default_factory=lambda: REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """The start of a server and the bounds by which it is judged.

    start: the command, "" for one that the target composes.
    reader: a command that prints stored names, "" for Hudi's format.
    dir_format: how requests write the marker directory, "" for the usual way.
    identity: whether creates carry `requestid`.
    batch_threads: how many it has, None for what `{threads}` tells it, or Hudi's default.
    endpoint: an object store of the user's own, None for the kit's front.
    writers: how many write a table at once, None for one. orders: whether in every order of their steps.
    services: whether table services alone are walked.
    """

    start: str = ""
    reader: str = ""
    dir_format: str = ""
    identity: bool = False
    batch_threads: int | None = None
    endpoint: Endpoint | None = None
    writers: int | None = None
    orders: bool = False
    services: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, without the keys of an endpoint."""
        found = {name: getattr(self, name) for name in _STORED_OPTIONS}
        return found | ({"endpoint": self.endpoint.to_dict()} if self.endpoint is not None else {})

    @staticmethod
    def from_dict(raw: Mapping[str, Any]) -> ServerOptions:
        """The inverse of `to_dict`; the keys of an endpoint come from the environment."""
        from marker_sim.targets.server_settings import known_endpoint

        known = {name: raw[name] for name in _STORED_OPTIONS if name in raw}
        endpoint = known_endpoint(raw["endpoint"], os.environ) if "endpoint" in raw else None
        return ServerOptions(**known, endpoint=endpoint)


_STORED_OPTIONS = SERVER_OPTIONS[:5]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRequest:
    """The complete and consistent request for one campaign, from the command line to the verdict.

    modes, storages: storage models in the simulated world, one real storage elsewhere.
    budget_s: seconds; infinite with `runs`.
    runs: a number of plans, None for as many as fit. In real time these are plans by number (`Target.plan_of`).
    first: the turn of the seed to begin with; in real time, how many plans by number come before.
    jobs: worker processes.
    guarantees: None for all.
    baseline: what is known already, None without one; write_baseline: the file for that and what is found.
    stop_at_first: whether the first violation that is not in the baseline ends it.
    shrinking: whether failing plans are made small.
    seen: how often each kind of failure (`Kind.place`) was seen before, in the larger campaign that this is a part of.
    canaries: whether the kit has to see a planted defect; a piece of a larger campaign needs neither.
    listing: whether there is to be a row of each run of a plan.
    report: where the report goes, and the logs of processes.
    against: what is asked of the system that it is compared with, None without one.
    argv: the words of the command line, without the secret of an endpoint.
    """

    target: Target
    modes: tuple[str, ...]
    storages: tuple[str, ...]
    seed: int
    profile: Profile
    budget_s: float = math.inf
    runs: int | None = None
    first: int = 0
    jobs: int = 1
    guarantees: frozenset[str] | None = None
    baseline: frozenset[Known] | None = None
    write_baseline: Path | None = None
    stop_at_first: bool = False
    shrinking: bool = True
    seen: Mapping[str, int] = field(default_factory=dict)
    canaries: bool = True
    listing: bool = False
    server: ServerOptions = field(default_factory=ServerOptions)
    report: Path = Path()
    against: CampaignRequest | None = None
    argv: tuple[str, ...] = ()

    @property
    def storage(self) -> str:
        """The one real storage of a system that runs in real time."""
        return self.storages[0]


class RealRuns(Protocol):
    """The runs of one campaign in real time.

    lanes     how many are played beside each other, in threads; a single one is played by the thread that drew it
    draw      the next run, whose `line` says which it is, after what was `reached`; None when no further one fits
    play      runs it; HarnessError when the kit's surroundings failed
    at_once   how many plans may be run again beside each other, in threads, where most of the time is waiting
    again     runs a plan
    reserve   a share of the budget is kept for making small what was found
    took      it is over and broke these kinds of promises; called by the thread that drew it
    close     ends what is under way at once
    counts    what runs and their steps are called
    complete  the campaign with what only these runs can say of it
    """

    lanes: int
    at_once: int
    counts: tuple[str, str]

    def draw(self, reached: Mapping[str, int]) -> Any: ...
    def play(self, drawn: Any) -> PlayedRun: ...
    def again(self, plan: Plan, deadline: float, fresh: bool = False, probing: bool = True) -> PlayedRun: ...
    def reserve(self, share: float) -> None: ...
    def took(self, drawn: Any, played: Any, broken: Collection[Kind]) -> None: ...
    def close(self) -> None: ...
    def complete(self, campaign: Campaign) -> Campaign: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One system under test.

    sut: its name, as `--sut` has it.
    can: what it can be asked for.
    version: "" if it is unknown, or known only to the loaded system.
    """

    sut: str
    can: TargetCapabilities
    version: str = ""

    def check_options(self, server: ServerOptions, storage: str) -> None:
        """UsageError for the first option whose value does not fit; which options it takes is checked before."""

    def started_by(self, server: ServerOptions) -> Target:
        """The target with the part of its options that belongs to its name; UsageError when they do not go together."""
        return self

    def prepare(self, request: CampaignRequest, progress: Callable[[str], None]) -> None:
        """UsageError or HarnessError for the first thing that is missing here; fetches what a cache does not hold."""

    def forecast(self, request: CampaignRequest) -> str:
        """The sentence about what the budget leaves out; "" when it has room for all, or that is unknown."""
        return ""

    def script_settings(self) -> dict[str, str]:
        """The environment of a script that plays its failures by processes; {} where its runs need no confirmation."""
        return {}

    def load(self) -> System | None:
        """The system that runs plans; UsageError when it cannot be loaded, None when it runs in real time."""
        return None

    def plan_of(self, request: CampaignRequest, number: int) -> Plan:
        """The plan with a number, from 1 on, in the search with the request's seed."""
        raise AssertionError(f"the runs of {self.sut} are drawn by the kit")

    def goals(self, request: CampaignRequest) -> tuple[str, ...]:
        """The goals that such plans must reach before a guarantee without violation holds."""
        return ()

    def real_runs(self, request: CampaignRequest, progress: Callable[[str], None]) -> AbstractContextManager[RealRuns]:
        """The runs of a campaign; all processes that they started have ended when the block is left."""
        raise AssertionError(f"the runs of {self.sut} are plans")
