"""Facts that somebody else recorded: a directory of Parquet, CSV or JSON files with the columns of docs/scale.md.

Directory and name are texts, or ids that `texts.parquet` (id, text) in the same directory spells out. `header.json` may
say whose facts they are, with the keys of a history's header.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from marker_sim.errors import UsageError
from marker_sim.history import Header
from marker_sim.judges.sets.rules import FACTS, RULES, SetRule
from marker_sim.scale.arrow_engine import ArrowFacts
from marker_sim.scale.sql_engines import COLUMNS, SqlFacts, duckdb_facts, spark_facts

TEXTS, HEADER = "texts.parquet", "header.json"
_FORMS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}


@dataclass(frozen=True, slots=True)
class FactFiles:
    """Files of one form in a directory. interned: whether they hold ids, so that they are read into memory.

    places: what Spark reads, the files or a URI that it alone can read.
    """

    directory: Path
    files: tuple[Path, ...]
    form: str
    interned: bool
    remote: str = ""

    @property
    def places(self) -> list[str]:
        """What Spark reads."""
        return [self.remote] if self.remote else [str(path.absolute()) for path in self.files]

    def header(self) -> Header:
        """Whose facts they are; a header of its own for want of a file."""
        path = self.directory / HEADER
        if not path.is_file():
            return Header(world="foreign", sut="facts")
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            return Header(**{key: given[key] for key in given.keys() & {each.name for each in fields(Header)}})
        except (OSError, ValueError, AttributeError) as error:
            raise UsageError(f"{path} is no header of a history ({error}); docs/history.md has its keys") from error

    def text(self, number: int) -> str:
        """What an id stands for; the id itself where nobody says."""
        path = self.directory / TEXTS
        if not path.is_file():
            return str(number)
        found = pq.read_table(path, columns=["text"], filters=pc.field("id") == number)["text"].to_pylist()
        return str(found[0]) if found else str(number)

    @contextmanager
    def engine(self, spark_master: str | None) -> Iterator[ArrowFacts | SqlFacts]:
        """What judges them: Spark where it is asked for, columns in memory for ids, else DuckDB."""
        if spark_master is not None:
            with spark_facts(self.places, self.form, self.text, spark_master) as facts:
                yield facts
        elif self.interned:
            yield ArrowFacts(self._read(), self.text)
        else:
            with (
                tempfile.TemporaryDirectory(prefix="marker-sim-facts-") as scratch,
                duckdb_facts(self.files, self.form, self.text, Path(scratch)) as facts,
            ):
                yield facts

    def _read(self) -> pa.Table:
        tables = [pq.read_table(path, columns=list(COLUMNS), read_dictionary=["fact"]) for path in self.files]
        return pa.concat_tables(tables).unify_dictionaries()


def remote_facts(path: Path) -> FactFiles | None:
    """Facts in Parquet at a URI, which Spark reads; None for a path. A path has lost a slash of its URI."""
    scheme, found, rest = str(path).partition(":/")
    if not found or not scheme.isalnum() or path.exists():
        return None
    return FactFiles(
        path, (), "parquet", False, f"{scheme}://{rest.lstrip('/')}" if scheme != "file" else f"file:///{rest}"
    )


def find_facts(directory: Path) -> FactFiles | None:
    """The facts in a directory, None where no file in it looks like some; UsageError when they cannot be judged."""
    files = sorted(path for path in directory.iterdir() if path.suffix in _FORMS and path.name not in (TEXTS, HEADER))
    if not files or any(
        path.name in ("history.parquet", "history.jsonl", "verdict.json", "plan.json") for path in files
    ):
        return None
    forms = sorted({path.suffix for path in files})
    if len(forms) > 1:
        raise UsageError(f"{directory} has files of several forms ({', '.join(forms)}); give facts in one of them")
    if forms != [".parquet"]:
        return FactFiles(directory, tuple(files), _FORMS[forms[0]], False)
    try:
        schema = pq.read_schema(files[0])
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"{files[0]} is no Parquet file ({error})") from error
    lacking = [name for name in COLUMNS if name not in schema.names]
    if lacking:
        raise UsageError(f"{files[0]} lacks the column {lacking[0]!r}; facts have the columns {', '.join(COLUMNS)}")
    interned = all(pa.types.is_integer(schema.field(name).type) for name in ("directory", "name"))
    return FactFiles(directory, tuple(files), "parquet", interned)


def lacking_facts(kinds: frozenset[str]) -> dict[str, str]:
    """By rule, what it lacks to be judged; UsageError for a fact that is none. kinds: the facts that were given."""
    for word in sorted(kinds - FACTS.keys()):
        raise UsageError(f"{word!r} is no fact; accepted: {', '.join(FACTS)}")
    return {rule.id: why for rule in RULES if (why := _lacks(rule, kinds))}


def _lacks(rule: SetRule, kinds: frozenset[str]) -> str:
    needed = [*rule.minus[:1], *([rule.within] if rule.within else [])]
    missing = [fact for fact in needed if fact not in kinds]
    if rule.of not in kinds or not missing:
        return ""
    return (
        f"no fact {missing[0]!r} was given, which {rule.id} needs (a row of it without a name says that there is none)"
    )
