"""A profile lists what an implementation promises, for each guarantee and class of faults, and the source.

A profile is a TOML or JSON file (docs/guarantees.md). Its rules are tried in order, those of the shipped profile that
it extends before its own; the last match wins. Nothing is promised under a loss of power but by a rule that names it.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from marker_sim.errors import UsageError
from marker_sim.faults import FAULT_CLASSES
from marker_sim.judges.findings import Breach, Finding
from marker_sim.judges.guarantees import ALL, parse_guarantees
from marker_sim.reading import read_as

SHIPPED = ("reference", "python", "http", "http-one-server", "http-power-loss", "hudi", "hudi-spark", "reference-spark")
_POWER = "power-loss"
_NAMED = "docs/guarantees.md, profiles: under a loss of power only what a rule says of it is promised"
_MODES = frozenset({"direct", "timeline", "both"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Whether one guarantee is promised in a mode, on a storage and under a fault class.

    source: "" when no rule matches.
    """

    promised: bool
    applicable: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of a profile; an empty set matches everything."""

    guarantees: frozenset[str]
    modes: frozenset[str]
    storages: frozenset[str]
    under: frozenset[str]
    promise: Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProfileEntry:
    """A rule as it is written in the file."""

    guarantee: str | tuple[str, ...]
    mode: str | tuple[str, ...] = ()
    storage: str | tuple[str, ...] = ()
    under: str | tuple[str, ...] = ()
    promised: bool = True
    applicable: bool = True
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The promises of one implementation; a guarantee that no rule matches is not promised."""

    name: str
    rules: tuple[Rule, ...]

    def promise(self, guarantee: str, mode: str, storage: str, under: str) -> Promise:
        """The last matching rule, else not promised but applicable."""
        for rule in reversed(self.rules):
            if (
                guarantee in rule.guarantees
                and (not rule.modes or mode in rule.modes)
                and (not rule.storages or storage in rule.storages)
                and (under in rule.under or not (rule.under or (under == _POWER and rule.promise.promised)))
            ):
                return rule.promise
        return Promise(promised=False, applicable=True, source=_NAMED if under == _POWER else "")

    def survives_power_loss(self, mode: str, storage: str) -> bool:
        """Whether anything is promised under a loss of power."""
        return any(self.promise(guarantee, mode, storage, _POWER).promised for guarantee in ALL)

    def broken_by(self, finding: Finding, mode: str, storage: str) -> tuple[Breach, ...]:
        """The first breach of each cause that the profile promises not to happen, in the order of the finding."""
        first: dict[str, Breach] = {}
        for breach in finding.breaches:
            if self.promise(finding.guarantee, mode, storage, breach.under).promised:
                first.setdefault(breach.cause, breach)
        return tuple(first.values())

    def to_dict(self) -> dict[str, Any]:
        """The inverse of `parse_profile`."""
        return {"name": self.name, "promise": [_entry(rule) for rule in self.rules]}


def unshipped(profile: Profile) -> dict[str, Any] | None:
    """The profile in the form stored with its results; None for a shipped one, whose name is enough."""
    shipped = profile.name in SHIPPED and load_profile(profile.name) == profile
    return None if shipped else profile.to_dict()


def load_profile(name_or_path: str) -> Profile:
    """A shipped profile by name, or one from a .toml or .json file; UsageError says what is wrong with it."""
    if name_or_path in SHIPPED:
        text = (files("marker_sim.judges.promises") / f"{name_or_path}.toml").read_text(encoding="utf-8")
        return parse_profile(tomllib.loads(text), name_or_path)
    path = Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
        raw = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"profile {name_or_path!r} cannot be read ({error}); give one of {', '.join(SHIPPED)} or the path of a"
            " TOML or JSON file as described in docs/guarantees.md"
        ) from error
    return parse_profile(raw, name_or_path)


def parse_profile(raw: Any, origin: str) -> Profile:
    """A profile from parsed TOML or JSON."""
    if not isinstance(raw, dict) or not isinstance(raw.get("promise"), list):
        raise UsageError(f"{origin} is not a profile: it needs a name and a list of `promise` rules")
    extended = raw.get("extends")
    if extended is not None and extended not in SHIPPED:
        raise UsageError(f"{origin}: extends was given {extended!r}; write one of {', '.join(SHIPPED)}")
    inherited = () if extended is None else load_profile(extended).rules
    rules = tuple(_rule(entry, f"{origin}, rule {number}") for number, entry in enumerate(raw["promise"], start=1))
    return Profile(name=str(raw.get("name", origin)), rules=(*inherited, *rules))


def _entry(rule: Rule) -> dict[str, Any]:
    sets = {"guarantee": rule.guarantees, "mode": rule.modes, "storage": rule.storages, "under": rule.under}
    words = {key: sorted(value) for key, value in sets.items() if value}
    promise = rule.promise
    return words | {"promised": promise.promised, "applicable": promise.applicable, "source": promise.source}


def _rule(raw: Any, origin: str) -> Rule:
    entry = read_as(_ProfileEntry, raw, origin)
    words = _words(entry.guarantee)
    return Rule(
        guarantees=ALL if "*" in words else parse_guarantees(",".join(sorted(words))),
        modes=_closed(entry.mode, "mode", _MODES, origin),
        storages=_words(entry.storage),
        under=_closed(entry.under, "under", frozenset(FAULT_CLASSES), origin),
        promise=Promise(promised=entry.promised and entry.applicable, applicable=entry.applicable, source=entry.source),
    )


def _words(given: str | tuple[str, ...]) -> frozenset[str]:
    return frozenset([given] if isinstance(given, str) else given)


def _closed(given: str | tuple[str, ...], key: str, accepted: frozenset[str], origin: str) -> frozenset[str]:
    words = _words(given)
    if not words <= accepted:
        raise UsageError(f"{origin}: {key} has {sorted(words - accepted)}; accepted are {sorted(accepted)}")
    return words
