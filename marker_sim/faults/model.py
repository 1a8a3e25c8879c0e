"""One fault of a plan: its kind, target, trigger and settings.

It arms at a step of its target, at a named site, or at a storage call that matches a description. The n-th is counted
for steps and arrivals over all lives of the target, for calls over all processes that make them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from marker_sim.faults.row import ANY_CALL, CHANGES
from marker_sim.faults.sites import SITES
from marker_sim.faults.table import FaultKind

When = Literal["before", "after"]
# Calls on local files: opening for writing; removing some of the content; closing a file open for writing.
OPEN, CUT, CLOSE = "open", "cut", "close"
# More calls on local files; open, cut, write, allocate, rename and link count as puts as well. Of Hudi's Java client
# alone are status, its look at one path, and request, to its own timeline server.
_LOCAL = (
    OPEN,
    CUT,
    "write",
    "allocate",
    CLOSE,
    "rename",
    "link",
    "symlink",
    "mkdir",
    "rmdir",
    "sync",
    "stat",
    "status",
    "request",
    "lock",
    "unlock",
)
_OPERATIONS = (*ANY_CALL, *_LOCAL)
_WHENS: tuple[When, ...] = ("before", "after")


class Step(NamedTuple):
    """The target's `n`-th call through a seam, from 1."""

    n: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"step": self.n}

    def problem(self) -> str:
        """The reason why no world can run it, "" when one can; the same in the classes below."""
        return ""


class Site(NamedTuple):
    """The target's `n`-th arrival, from 1, at a place of `sites.SITES`."""

    name: str
    n: int

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"site": self.name, "arrival": self.n}

    def problem(self) -> str:
        """The error for an unknown site, else ""."""
        return "" if self.name in SITES else f"site {self.name!r} is none of those in marker_sim/faults/sites.py"


class Call(NamedTuple):
    """The `n`-th matching storage call, from 1, by a process whose name begins with the fault's target.

    pattern: a regular expression searched for in the path.
    operations: the operations that count, from `_OPERATIONS`.
    when: for kinds that kill or pause, before or after the call is applied.
    starting: whether to count only calls of servers that restart after a death and do not serve yet; if False, none of
        these calls count.
    """

    pattern: str = ""
    operations: tuple[str, ...] = CHANGES
    n: int = 1
    when: When = "before"
    starting: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        said = {"call": self.n, "path": self.pattern, "operations": list(self.operations), "when": self.when}
        return said | ({"starting": True} if self.starting else {})

    def problem(self) -> str:
        """The error for an unknown operation or moment, or a pattern that is no regular expression, else ""."""
        if strange := [operation for operation in self.operations if operation not in _OPERATIONS]:
            return f"operation {strange[0]!r} of a fault is none of {', '.join(_OPERATIONS)}"
        if self.when not in _WHENS:
            return f"{self.when!r} is not when a fault happens; give {' or '.join(_WHENS)}"
        try:
            re.compile(self.pattern)
        except re.error as error:
            return f"path {self.pattern!r} of a fault is no regular expression: {error}"
        return ""


Trigger = Step | Site | Call


def pop_trigger(raw: dict[str, Any]) -> Trigger:
    """The trigger, removed from the JSON-ready form of a fault."""
    if site := raw.pop("site", ""):
        return Site(site, raw.pop("arrival"))
    if "call" in raw:
        own = raw.pop("path"), tuple(raw.pop("operations")), raw.pop("call"), raw.pop("when")
        return Call(*own, raw.pop("starting", False))
    return Step(raw.pop("step"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSettings:
    """The settings of a fault. `FaultRow.settings` names those that a kind takes; the others keep their defaults.

    for_ms: its duration, for throttling within one marker directory; for a call that times out, how long its caller
    waits.
    restart_ms: the time from its death until the target starts again; -1 for never.
    late_ms: the delay of a request, its second copy, its effect, its answer, or the driver's notice.
    executors_ms: how long the executors of a killed driver go on.
    pace_ms: the interval at which an overloaded server takes up requests.
    jump_ms: the jump of a clock, backwards if negative.
    jitter_ms: the random variation of a delay, in both directions.
    kb_per_s: the rate of a connection.
    bytes: how many bytes a connection carries before it ends, or in one piece.
    percent: the share of affected connections.
    unsynced_ms: a power loss loses what was written in the last milliseconds, in models without sync. names, lengths: a
        power loss keeps the names of files, or also their lengths, with zeros for lost bytes (worlds/disk.py).
    attempts: the number of additional attempts.
    calls: the number of affected calls: in the same marker directory, or matching a `Call` from the n-th on.
    applied: the call had its effect; a deletion of many objects, a part of it.
    lost: sent bytes are lost; otherwise they arrive.
    upstream: on the way to the server; otherwise on the way back.
    removed: type files are removed; otherwise emptied.
    empty: a torn file is empty; otherwise a part of it exists.
    """

    for_ms: int = 0
    restart_ms: int = 0
    late_ms: int = 0
    executors_ms: int = 1
    pace_ms: int = 1
    jump_ms: int = 0
    jitter_ms: int = 0
    kb_per_s: int = 1
    bytes: int = 0
    percent: int = 100
    unsynced_ms: int = 1
    names: bool = False
    lengths: bool = False
    attempts: int = 1
    calls: int = 1
    applied: bool = False
    lost: bool = False
    upstream: bool = False
    removed: bool = False
    empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault. target: a client, "driver", "executor-0", "server", "second"; for `Call`, a prefix of several names.

    ValueError: the kind does not take a setting. At a `Call` each takes `AT_CALLS` as well.
    """

    kind: FaultKind
    target: str
    trigger: Trigger
    settings: FaultSettings = FaultSettings()

    def __post_init__(self) -> None:
        """Refuse settings that the kind does not take."""
        strange = _given(self.settings).keys() - set(self.settable)
        if strange:
            takes_said = ", ".join(self.settable) or "no settings"
            raise ValueError(f"fault {self.kind.value!r} takes {takes_said}, not {', '.join(sorted(strange))}")

    @staticmethod
    def of(kind: FaultKind, target: str, trigger: Trigger, **settings: Any) -> Fault:
        """A fault with the settings given by name."""
        return Fault(kind=kind, target=target, trigger=trigger, settings=FaultSettings(**settings))

    @property
    def n(self) -> int:
        """The number of the step, arrival or call at which it arms."""
        return self.trigger.n

    @property
    def settable(self) -> tuple[str, ...]:
        """The names of the settings that its kind takes."""
        return tuple(dict.fromkeys((*self.kind.row.settings, *(AT_CALLS if isinstance(self.trigger, Call) else ()))))

    @property
    def site(self) -> str:
        """The site at which it arms, "" when it arms at a step or a call."""
        return self.trigger.name if isinstance(self.trigger, Site) else ""

    def at(self, n: int) -> Fault:
        """The fault moved to another step, arrival or call."""
        return replace(self, trigger=self.trigger._replace(n=n))

    def but(self, **settings: Any) -> Fault:
        """The fault with other values of some settings."""
        return replace(self, settings=replace(self.settings, **settings))

    def of_kind(self, kind: FaultKind) -> Fault:
        """A fault of another kind at the same place, with the settings that both kinds take and the same duration."""
        mine, theirs = self.kind.row.settings, kind.row.settings
        kept = {name: getattr(self.settings, name) for name in mine if name in theirs}
        ours, other = self.kind.row.slots[0], kind.row.slots[0]
        if ours and other:
            kept[other] = getattr(self.settings, ours)
        return replace(self, kind=kind, settings=FaultSettings(**kept))

    def to_dict(self) -> dict[str, Any]:
        """The JSON-ready form, without settings that have their default."""
        return {"kind": self.kind.value, "target": self.target, **self.trigger.to_dict(), **_given(self.settings)}

    @staticmethod
    def from_dict(raw: dict[str, Any]) -> Fault:
        """The inverse of `to_dict`. ValueError or TypeError: what is wrong and what is accepted."""
        kind, left = _checked(raw)
        target, trigger = left.pop("target"), pop_trigger(left)
        return Fault(kind=kind, target=target, trigger=trigger, settings=FaultSettings(**left))

    def problem(self) -> str:
        """The reason why no world can run it, "" when one can."""
        fails = self.kind.row.family == "storage" and not self.kind.row.kills
        if fails and isinstance(self.trigger, Call) and CLOSE in self.trigger.operations:
            return "the closing of a file does not fail: a death or a pause is possible there"
        if self.kind is FaultKind.FALSE_ANSWER and not isinstance(self.trigger, Call):
            return "only a request of Hudi's Java client is answered false: it is due at a call"
        return self.trigger.problem()


AT_CALLS = ("calls", "for_ms")
_OLDER = {"no-space": "disk-full"}  # Former names of kinds in stored plans.
_TRIGGERS: dict[str, dict[str, type]] = {
    "site": {"site": str, "arrival": int},
    "call": {"call": int, "path": str, "operations": list, "when": str},
    "step": {"step": int},
}
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(FaultSettings)}
_TYPES = {name: type(default) for name, default in _DEFAULTS.items()}


def _given(settings: FaultSettings) -> dict[str, Any]:
    return {name: value for name, default in _DEFAULTS.items() if (value := getattr(settings, name)) != default}


def _checked(raw: Any) -> tuple[FaultKind, dict[str, Any]]:
    """The kind in a fault's JSON-ready form, and its other keys, after checking that the kind allows them."""
    if not isinstance(raw, dict):
        raise ValueError(f"a fault is {raw!r}; write an object with kind, target and step")
    try:
        word = raw.get("kind") or ""
        kind = FaultKind(_OLDER.get(word, word))
    except ValueError:
        kinds = ", ".join(each.value for each in FaultKind)
        raise ValueError(f"the kind of a fault is {raw.get('kind')!r}; accepted are {kinds}") from None
    left = {key: value for key, value in raw.items() if (key, value) != ("site", "")}
    trigger = next((each for each in ("site", "call") if each in left), "step")
    settings = dict.fromkeys((*kind.row.settings, *(AT_CALLS if trigger == "call" else ())))
    needed, more = {"kind": str, "target": str} | _TRIGGERS[trigger], {name: _TYPES[name] for name in settings}
    more |= {"starting": bool} if trigger == "call" else {}
    accepted = needed | more
    for key in (*left, *needed):
        if key not in accepted or key not in left:
            what = f"no key {key!r}" if key in accepted else f"a key {key!r}"
            raise ValueError(f"fault {kind.value!r} has {what}; accepted are {', '.join(accepted)}")
        if type(left[key]) is not accepted[key]:
            raise TypeError(f"{key} of fault {kind.value!r} is {left[key]!r}, not {accepted[key].__name__}")
    del left["kind"]
    return kind, left


def by_target(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Faults by target and step, the order in which a plan that was made has them."""
    return tuple(sorted(faults, key=lambda fault: (fault.target, fault.n)))
