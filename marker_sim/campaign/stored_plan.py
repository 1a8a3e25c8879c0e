"""A stored failure as it is run again, whatever file it was read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from marker_sim.judges.findings import UNEXPLAINED
from marker_sim.judges.guarantees import BY_ID
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.plan import Plan
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import ServerOptions

SIMULATED = "simulated"
REAL = "real"
# What files of failures call by the same names as `StoredPlan`.
_SAME = (
    "sut",
    "guarantee",
    "cause",
    "world",
    "deterministic",
    "message",
    "often",
    "entries_before",
    "ended",
    "version",
    "kit_version",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A stored failure, whatever file it was read from: what it is, how it runs again, and what a script says of it.

    name: its name on the terminal.
    guarantee: None when only a plan is known.
    cause: of its breach, "" for unknown.
    plan: None when there is none to run; hint says then what can be done.
    report: the report directory that it is a failure of; plan_name: its plan there.
    profile: None for the one that is shipped for the system.
    story: in a report, the number of the failure that represents its story, "" if unknown.
    world: "simulated", "real" or "spark"; "server" for a plan run against a foreign server, or by Hudi on Spark.
    server: how that is started.
    deterministic: whether a repeated run was the same.
    also: what else its story breaks.
    message: what was seen; evidence: the events that prove it, of the history in a file; lines: the same as text.
    source: the document with the promise, "" where it is not known.
    often: how often its plan breaks it, "" if this was not counted.
    entries_before: of the plan that it was made small from, 0 where it was not.
    ended: whether `shrink` had nothing left to try for its plan.
    version: of the system; kit_version: of the kit that found it; "" for unknown.
    """

    sut: str
    guarantee: str | None
    plan: Plan | None
    name: str = ""
    cause: str = ""
    story: str = ""
    hint: str = ""
    report: Path | None = None
    plan_name: str = ""
    profile: Profile | None = None
    world: str = SIMULATED
    server: ServerOptions | None = None
    deterministic: bool = True
    also: tuple[str, ...] = ()
    message: str = ""
    evidence: tuple[int, ...] = ()
    history: Path | None = None
    lines: tuple[str, ...] = ()
    source: str = ""
    often: str = ""
    entries_before: int = 0
    ended: bool = False
    version: str = ""
    kit_version: str = ""

    @classmethod
    def parse(cls, raw: Mapping[str, Any], where: str, **own: Any) -> StoredPlan:
        """The failure in a JSON object. where: the end of its name; own: what `raw` calls otherwise."""
        stored = cls(**{name: raw[name] for name in _SAME if name in raw} | own)
        return replace(stored, name=stored.title + where)

    @property
    def own_plan(self) -> Plan:
        """Its plan; AssertionError where it has none."""
        assert self.plan is not None, self.hint
        return self.plan

    @property
    def title(self) -> str:
        """The guarantee's id and name, "" where only a plan is known."""
        known = BY_ID.get(self.guarantee or "")
        return f"{known.id} {known.slug}" if known else self.guarantee or ""

    def profile_for(self, system: str) -> Profile:
        """The profile to judge a system by: for its own the one stored with the failure, else the one shipped."""
        if system == self.sut and self.profile is not None:
            return self.profile
        return load_profile(parse_target(system).can.profile)

    @property
    def defect(self) -> tuple[str, str]:
        """The key that it shares with failures that most likely have the same cause."""
        if self.story:
            return ("story", self.story)
        cause = "" if self.cause == UNEXPLAINED else self.cause
        return (self.guarantee, cause) if self.guarantee else ("", self.name)
