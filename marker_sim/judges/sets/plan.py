"""The rules as SQL that Spark runs: one row a name with a bit for each fact, one row a directory.

Only what other databases know as well is used (bit_or, max, coalesce), so that tests need no Spark. Whether directory
and name are text or numbers does not matter, and a number is no less exact: an interned name is equal to another one
when the texts are.
"""

from __future__ import annotations

from marker_sim.judges.sets.rules import FACTS, OF_DIRECTORIES, RULES, SHOWN, SetRule

_BITS = {fact: 1 << number for number, fact in enumerate(FACTS)}
_TIMED = tuple(dict.fromkeys(rule.of for rule in RULES if rule.before or rule.within))


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
    return f"CASE WHEN fact = '{fact}' THEN coalesce(moment, {FACTS[fact].unknown}) END"


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
        excuse = f"{_column(rule.of)} < coalesce({_column(rule.before)}, {FACTS[rule.of].unknown})"
    elif rule.within:
        excuse = f"{_column(rule.of)} >= {_column(rule.within)}"
    return f"{of} AND NOT ({missing} AND {excuse})", f"{missing} AND {excuse}", f"{missing} AND NOT ({excuse})"
