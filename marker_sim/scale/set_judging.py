"""Judges a stored history, or facts, by set differences: the findings, and the counts of each rule.

Facts are those that other programs recorded: a directory of Parquet, CSV or JSON files with the columns of
docs/scale.md. Directory and name are texts, or ids that `texts.parquet` (id, text) in the same directory spells out.
`header.json` may say whose facts they are, with the keys of a history's header.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from marker_sim.errors import UsageError
from marker_sim.faults import FAULT_CLASSES
from marker_sim.history import Header, read_jsonl
from marker_sim.judges.findings import Finding
from marker_sim.judges.promises.profiles import Profile
from marker_sim.judges.sets.rules import FACTS, RULES, Difference, SetRule, findings_of
from marker_sim.report.columns import as_table, open_parquet
from marker_sim.scale.engines import COLUMNS, ArrowFacts, FactCounts, counted_by_spark, unreadable
from marker_sim.scale.recorded import READ, RecordedFacts

TEXTS, HEADER = "texts.parquet", "header.json"
_FORMS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}
_TYPED = pa.schema([("fact", pa.string()), ("moment", pa.int64())])


@dataclass(frozen=True, slots=True)
class FactFiles:
    """Files of one form in a directory. remote: a URI that Spark alone can read, instead of files."""

    directory: Path
    files: tuple[Path, ...]
    form: str
    remote: str = ""

    @property
    def places(self) -> list[str]:
        """The paths that Spark reads."""
        return [self.remote] if self.remote else [str(path.absolute()) for path in self.files]

    def header(self) -> Header:
        """The header recorded with the facts, or a default one when there is none."""
        path = self.directory / HEADER
        if not path.is_file():
            return Header(world="foreign", sut="facts")
        try:
            given = json.loads(path.read_text(encoding="utf-8"))
            return Header(**{key: given[key] for key in given.keys() & {each.name for each in fields(Header)}})
        except (OSError, ValueError, AttributeError) as error:
            raise UsageError(f"{path} is no header of a history ({error}); docs/history.md has its keys") from error

    def text(self, number: int) -> str:
        """The text of an id; the id itself where no text is given."""
        path = self.directory / TEXTS
        if not path.is_file():
            return str(number)
        found = pq.read_table(path, columns=["text"], filters=pc.field("id") == number)["text"].to_pylist()
        return str(found[0]) if found else str(number)

    def counted(self, spark_master: str | None) -> FactCounts:
        """The kinds of facts and the result of each rule, by Spark or in memory; UsageError when they are no facts."""
        if spark_master is not None:
            return counted_by_spark(self.places, self.form, self.text, spark_master)
        try:
            tables = [_READERS[self.form](path).select(COLUMNS) for path in self.files]
            table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
            if self.form == "csv" and (self.directory / TEXTS).is_file():
                table = table.cast(pa.schema({"fact": pa.string()} | dict.fromkeys(COLUMNS[1:], pa.int64())))
            facts = ArrowFacts(table, self.text)
        except (OSError, KeyError, ValueError, pa.ArrowException) as error:
            raise unreadable(str(self.directory), error) from error
        return facts.kinds, facts.differences()


def remote_facts(path: Path) -> FactFiles | None:
    """Facts in Parquet at a URI that Spark reads; None for a local path. In a Path a URI has lost a slash."""
    scheme, found, rest = str(path).partition(":/")
    if not found or not scheme.isalnum() or path.exists():
        return None
    return FactFiles(path, (), "parquet", f"{scheme}://{rest.lstrip('/')}" if scheme != "file" else f"file:///{rest}")


def find_facts(directory: Path) -> FactFiles | None:
    """The facts in a directory, None where no file looks like facts; UsageError when they cannot be judged."""
    files = sorted(path for path in directory.iterdir() if path.suffix in _FORMS and path.name not in (TEXTS, HEADER))
    if not files or any(
        path.name in ("history.parquet", "history.jsonl", "verdict.json", "plan.json") for path in files
    ):
        return None
    forms = sorted({path.suffix for path in files})
    if len(forms) > 1:
        raise UsageError(f"{directory} has files of several forms ({', '.join(forms)}); give facts in one of them")
    return FactFiles(directory, tuple(files), _FORMS[forms[0]])


def _of_parquet(path: Path) -> pa.Table:
    return pq.read_table(path, columns=list(COLUMNS), read_dictionary=["fact"])


def _of_csv(path: Path) -> pa.Table:
    """Directories and names as written: digits alone are text, unless `texts.parquet` exists."""
    types = dict.fromkeys(COLUMNS, pa.string()) | {"moment": pa.int64()}
    return pa_csv.read_csv(
        path,
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=types, include_columns=COLUMNS, null_values=[""], strings_can_be_null=True
        ),
    )


def _of_json(path: Path) -> pa.Table:
    """Facts as one JSON object a line, or an array of objects."""
    with path.open("rb") as file:
        lines: io.IOBase = file
        if file.read(1) == b"[":
            lines = io.BytesIO(b"\n".join(json.dumps(row).encode() for row in json.loads(path.read_bytes())))
        lines.seek(0)
        return pa_json.read_json(lines, parse_options=pa_json.ParseOptions(explicit_schema=_TYPED))


_READERS = {"parquet": _of_parquet, "csv": _of_csv, "json": _of_json}


def lacking_facts(kinds: frozenset[str]) -> dict[str, str]:
    """What each rule lacks to be judged; UsageError for an unknown fact. kinds: the facts that were given."""
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


_BATCH_ROWS = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSets:
    """The results of the set rules. lacking: by rule, why it was not judged; classes: of the faults in the history."""

    header: Header
    differences: dict[str, Difference]
    lacking: dict[str, str]
    classes: frozenset[str]

    def findings(self, profile: Profile) -> tuple[Finding, ...]:
        """One finding for each guarantee. Columns do not show under which fault a name was lost, so a promised breach
        under some of those that happened, and not under others, leaves the guarantee undecided.
        """
        own = [name for name in FAULT_CLASSES if name in self.classes and name != "none"]
        mode, storage = self.header.mode, self.header.storage
        found = []
        for finding in findings_of(self.differences, self.lacking, own[0] if own else "none"):
            promised = {profile.promise(finding.guarantee, mode, storage, under).promised for under in (*own, "none")}
            if finding.breaches and len(promised) > 1:
                why = f"{finding.breaches[0].message}; whether that is promised under {', '.join(own)} needs the others"
                found.append(replace(finding, breaches=(), undecided=why))
            else:
                found.append(finding)
        return tuple(found)

    def to_dict(self) -> dict[str, dict[str, int | str]]:
        """By rule: the numbers of names judged, excused and broken, and why it was not judged."""
        counts = {rule: each._asdict() for rule, each in self.differences.items()}
        for each in counts.values():
            del each["shown"]
        return {rule: each | ({"lacking": self.lacking[rule]} if rule in self.lacking else {})
                for rule, each in counts.items()}  # fmt: skip


def judge_facts(facts: FactFiles, spark_master: str | None) -> JudgedSets:
    """The results for facts recorded by other programs."""
    kinds, differences = facts.counted(spark_master)
    lacking = lacking_facts(kinds)
    found = {rule: each for rule, each in differences.items() if rule not in lacking}
    return JudgedSets(header=facts.header(), differences=found, lacking=lacking, classes=frozenset())


def judge_history_by_sets(path: Path, spark_master: str | None) -> JudgedSets:
    """The results for a history file (.parquet or .jsonl) from its columns, read in parts."""
    if path.suffix == ".jsonl":
        history = read_jsonl(path)
        header, batches = history.header, iter([as_table(history)])
    else:
        file, header = open_parquet(path)
        batches = (pa.Table.from_batches([batch]) for batch in file.iter_batches(_BATCH_ROWS, columns=list(READ)))
    if header.witness != "effects" or header.layout != "hudi":
        why = "storage was read now and then, and sets need every effect on it"
        return JudgedSets(header=header, differences={}, lacking={rule.id: why for rule in RULES}, classes=frozenset())
    collected = RecordedFacts()
    for batch in batches:
        collected.add(batch)
    found = _differences(collected.table(), spark_master)
    return JudgedSets(header=header, differences=found, lacking={}, classes=frozenset(collected.classes))


def _differences(facts: pa.Table, spark_master: str | None) -> dict[str, Difference]:
    if spark_master is None:
        return ArrowFacts(facts).differences()
    with TemporaryDirectory(prefix="marker-sim-facts-") as scratch:
        pq.write_table(facts, Path(scratch) / "facts.parquet")
        return counted_by_spark([scratch], "parquet", str, spark_master)[1]
