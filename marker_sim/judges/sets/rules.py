"""Kinds of facts about marker directories, and the guarantees that are a difference of two sets of facts.

A fact is a row (fact, directory, name, moment): a word of `FACTS`, a marker directory `TABLE/.hoodie/.temp/INSTANT`,
a marker's name or the path of a data file relative to the table (none for a fact about the directory), and when, as a
number that grows: the index of an event, or a time. Rows may repeat; of several the latest counts.

    breach   a name that is in `of` and in none of `minus`, where `within` was recorded of its directory
    excused  one of these for which the excuse holds: `of` came before `before`, or did not come before `within`

docs/scale.md says which guarantee of the other judges each rule implies.

Spark runs the rules as SQL: one row a name with a bit for each fact, one row a directory. Only what other databases
know as well is used (bit_or, max, coalesce), so that tests need no Spark. Whether directory and name are text or
numbers does not matter, and a number is no less exact: an interned name is equal to another one when the texts are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from marker_sim.history.index.presence import NEVER
from marker_sim.judges.findings import Breach, Finding, by_number

EARLIEST = -1
SHOWN = 5


# The kinds of facts, each with its `moment` where none was given, chosen so that it cannot cause a breach.
FACTS = {
    "requested": EARLIEST,  # A create of the marker may have had an effect.
    "answered": EARLIEST,  # A create of the marker was answered "created" or "exists"; moment: when it was asked for.
    "stored": EARLIEST,  # In the end a new reader of storage finds the marker.
    "deleted": NEVER,  # Of the directory: until `moment` a deletion of it, or damage by others, may have had an effect.
    "committed": EARLIEST,  # A completed commit of the instant names the data file.
    "undone": EARLIEST,  # A rollback or sweep removed the data file after it was committed.
    "cleaned": EARLIEST,  # A clean, or another permitted deletion, removed the data file after it was committed.
    "present": NEVER,  # In the end the data file of the instant is in storage; moment: since when.
    "finalized": EARLIEST,  # Of the directory: the instant is committed, its markers were listed from `moment` on.
    "rolled-back": EARLIEST,  # Of the directory: a rollback is complete, it listed the markers from `moment` on.
}
OF_DIRECTORIES = ("deleted", "finalized", "rolled-back")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRule:
    """A rule: one difference of sets. within: a fact about the directory, "" for all; before: one that excuses."""

    id: str
    guarantee: str
    of: str
    minus: tuple[str, ...]
    sentence: str
    cause: str
    within: str = ""
    before: str = ""


RULES: tuple[SetRule, ...] = (
    SetRule(
        id="answered-not-stored",
        guarantee="G4",
        of="answered",
        minus=("stored",),
        before="deleted",
        sentence="was answered and is not stored in the end",
        cause="not-stored",
    ),
    SetRule(
        id="stored-not-requested",
        guarantee="G4",
        of="stored",
        minus=("requested",),
        sentence="is stored in the end and no create had requested it",
        cause="stranger",
    ),
    SetRule(
        id="committed-not-stored",
        guarantee="G14",
        of="committed",
        minus=("present", "undone", "cleaned"),
        sentence="is named by a completed commit and is not stored in the end",
        cause="commit-without-file",
    ),
    SetRule(
        id="committed-and-undone",
        guarantee="G15",
        of="undone",
        minus=("present",),
        sentence="was committed, and a rollback or sweep removed it",
        cause="undone",
    ),
    SetRule(
        id="stored-not-committed",
        guarantee="G14",
        of="present",
        minus=("committed",),
        within="finalized",
        sentence="was stored before the markers were listed and is left of an instant that was committed without it",
        cause="left-by-commit",
    ),
    SetRule(
        id="stored-and-rolled-back",
        guarantee="G15",
        of="present",
        minus=("committed",),
        within="rolled-back",
        sentence="was stored before the markers were listed and is left of an instant that was rolled back",
        cause="left-by-rollback",
    ),
)
_BITS = {fact: 1 << number for number, fact in enumerate(FACTS)}
_TIMED = tuple(dict.fromkeys(rule.of for rule in RULES if rule.before or rule.within))
GUARANTEES_BY_SETS = frozenset(rule.guarantee for rule in RULES)


class Difference(NamedTuple):
    """The result of a rule. judged: the number of names decided, breaches included.

    shown: the first `SHOWN` names in breach, as (directory, name), sorted as bytes of UTF-8.
    """

    judged: int
    excused: int
    breaches: int
    shown: tuple[tuple[str, str], ...]


NOTHING = Difference(0, 0, 0, ())


def findings_of(
    differences: Mapping[str, Difference], lacking: Mapping[str, str], under: str = "none"
) -> tuple[Finding, ...]:
    """One finding for each guarantee. lacking: by rule, why it was not judged; under: the class of all breaches."""
    found = []
    for guarantee in by_number(GUARANTEES_BY_SETS):
        rules = [rule for rule in RULES if rule.guarantee == guarantee]
        results = [(rule, differences.get(rule.id, NOTHING)) for rule in rules]
        breaches: list[Breach] = []
        excused: dict[str, int] = {}
        for rule, result in results:
            breaches += _breaches(rule, result, under)
            if result.excused:
                name = "late-write" if rule.within else "deletion-open"
                excused[name] = excused.get(name, 0) + result.excused
        undecided = "; ".join(dict.fromkeys(lacking[rule.id] for rule in rules if rule.id in lacking))
        found.append(
            Finding(
                guarantee=guarantee,
                applicable=True,
                judged=sum(result.judged for _, result in results),
                breaches=tuple(breaches),
                undecided=undecided,
                excused=tuple(sorted(excused.items())),
            )
        )
    return tuple(found)


def _breaches(rule: SetRule, result: Difference, under: str) -> Iterable[Breach]:
    """All breaches; each one beyond the names shown has the message of the last."""
    more = f" ({result.breaches:,} such names)" if result.breaches > 1 else ""
    made = [
        Breach(message=f"{directory}: {name!r} {rule.sentence}{more}", evidence=(), under=under, cause=rule.cause)
        for directory, name in result.shown
    ]
    return made + made[-1:] * (result.breaches - len(made))


def counting_query(source: str) -> str:
    """The query for one row with the numbers judged, excused and broken of each rule in order. source: a table."""
    sums = ", ".join(
        f"coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0)"
        for rule in RULES
        for condition in _conditions(rule)
    )
    return f"{_names(source)} SELECT {sums} FROM joined"


def showing_query(source: str, rule: SetRule) -> str:
    """The query for the first names that break a rule: directory, name."""
    broken = _conditions(rule)[2]
    return f"{_names(source)} SELECT directory, name FROM joined WHERE {broken} ORDER BY directory, name LIMIT {SHOWN}"


def _names(source: str) -> str:
    """The common part of both queries: `joined` has a row for each name, with the facts of its directory."""
    bits = " ".join(f"WHEN '{fact}' THEN {bit}" for fact, bit in _BITS.items() if fact not in OF_DIRECTORIES)
    timed = ", ".join(f"max({_at(fact)}) AS {_column(fact)}" for fact in _TIMED)
    of_directories = ", ".join(f"max({_at(fact)}) AS {_column(fact)}" for fact in OF_DIRECTORIES)
    listed = ", ".join(f"'{fact}'" for fact in OF_DIRECTORIES)
    known = ", ".join(f"'{fact}'" for fact in _BITS if fact not in OF_DIRECTORIES)
    return (
        f"WITH names AS (SELECT directory, name, bit_or(CASE fact {bits} ELSE 0 END) AS held, {timed} FROM {source}"
        f" WHERE name IS NOT NULL AND fact IN ({known}) GROUP BY directory, name),"
        f" directories AS (SELECT directory AS place, {of_directories} FROM {source} WHERE fact IN ({listed})"
        " GROUP BY directory),"
        " joined AS (SELECT * FROM names LEFT JOIN directories ON directory = place)"
    )


def _at(fact: str) -> str:
    return f"CASE WHEN fact = '{fact}' THEN coalesce(moment, {FACTS[fact]}) END"


def _column(fact: str) -> str:
    return f"{fact.replace('-', '_')}_at"


def _conditions(rule: SetRule) -> tuple[str, str, str]:
    """The conditions under which a name was judged, excused and broken."""
    of = f"(held & {_BITS[rule.of]}) <> 0"
    if rule.within:
        of += f" AND {_column(rule.within)} IS NOT NULL"
    missing = f"{of} AND (held & {sum(_BITS[fact] for fact in rule.minus)}) = 0"
    excuse = "FALSE"
    if rule.before:
        excuse = f"{_column(rule.of)} < coalesce({_column(rule.before)}, {FACTS[rule.of]})"
    elif rule.within:
        excuse = f"{_column(rule.of)} >= {_column(rule.within)}"
    return f"{of} AND NOT ({missing} AND {excuse})", f"{missing} AND {excuse}", f"{missing} AND NOT ({excuse})"
