"""A plan is a small immutable value that determines a run: workload, schedule and faults, and nothing else.

`entries` counts what a reader of a shrunk plan must understand. A plan is stored as JSON and opens in later versions.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_type_hints

from marker_sim.errors import UsageError
from marker_sim.faults import Fault
from marker_sim.faults.row import ANY_STORAGE
from marker_sim.history import NO_SERVER
from marker_sim.names import MarkerDirectory, MarkerType, check_marker_name, marker_name, parse_directory
from marker_sim.reading import read_as

SCHEMA = 2
MODES = ("direct", "timeline")
STORAGES = ANY_STORAGE
PLACES = tuple((mode, storage) for mode in MODES for storage in STORAGES)
OPERATIONS = ("create", "list", "list-data", "list-log", "exists", "delete", "hostile")
SPELLINGS = ("slash-at-end", "double-slash")  # Alternative spellings of one marker directory.
MALFORMED = ("outside-temp", "outside-hoodie", "climbing")  # Directories that are no marker directories.
REQUEST_FORMS = (  # Equivalent HTTP forms of a request (worlds/http/http_client.py).
    "empty-chunk",
    "escaped",
    "more-parameters",
    "last-on-connection",
    "offers-upgrade",
    "in-pieces",
    "uncompressed",
)
ALONE = tuple(form for form in REQUEST_FORMS if form not in ("escaped", "more-parameters"))  # Own connection.
TASK_KINDS = ("CREATE", "MERGE", "APPEND")
OF_OTHERS, AS = "others", "as"
STRAYS = tuple(f"{what}-{kind}" for what in (OF_OTHERS, AS) for kind in TASK_KINDS)
PROBE, COPY = "probe", "{copy}"
Instants = Literal["millis", "seconds", "bootstrap"]
Action = Literal["", "commit", "deltacommit"]
Partitions = Literal["plain", "nested", "hive", "odd", "none", "eight", "many"]
Service = Literal["compact", "cluster", "clean", "archive", "savepoint", "restore", "upgrade"]
FutureStep = Literal["commit", "default", "retry", "rebuild", "drop-savepoint", Service]
Sharing = Literal["default", "prefer-writer", "one-plan", "early-detection", "early-transaction", "file-lock"]
OF_CROWD = "~"  # Separates the name of an operation's actor from the number of the client.
COPIES_MAX = 10_000
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # Surrogates that represent no byte.
_SAYS_PLAN = ("ops", "schema", "writes")  # JSON without any of these keys would be a plan of defaults.


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One operation of a client, in the order of the plan; "hostile" is a create that must be refused.

    directory: index into `Plan.directories`. request: identity, equal in a resend, "" for none.
    after_ms: how long the client waits first. server: 0, or 1 for the second server while it lives.
    spelled: how a request writes the directory, "" as usual: one of `SPELLINGS`, or of `MALFORMED` in a hostile one.
    form: the form of its request to a real server, "" for the usual one: one of `REQUEST_FORMS`, all equivalent.
    copies: the number of clients that perform it at once, each with all other operations of the same actor;
        `COPY` in the name or the request stands for the number of the client.
    apart_ms: the delay between the starts of two of these clients.
    """

    actor: str
    kind: str
    directory: int = 0
    name: str = ""
    request: str = ""
    after_ms: int = 0
    server: int = 0
    spelled: str = ""
    form: str = ""
    copies: int = 1
    apart_ms: int = 0

    @property
    def actors(self) -> tuple[str, ...]:
        """The names of its clients."""
        return tuple(f"{self.actor}{OF_CROWD}{n}" for n in range(self.copies)) if self.copies > 1 else (self.actor,)

    def single(self) -> tuple[Op, ...]:
        """The operation of each of its clients."""
        if self.copies == 1:
            return (self,)
        return tuple(
            replace(
                self,
                actor=actor,
                name=self.name.replace(COPY, str(number)),
                request=self.request.replace(COPY, str(number)),
                after_ms=self.after_ms + number * self.apart_ms,
                copies=1,
                apart_ms=0,
            )
            for number, actor in enumerate(self.actors)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task of a write: it makes one file of a file group, by as many attempts as it takes.

    kind: CREATE a new base file, MERGE a rewritten base file, APPEND a log file; the last two build on what the
    table holds of the group and become CREATE where it holds nothing. copies: attempts that start at once, 1 without
    speculation. slow_ms: how long an attempt waits between its marker and its file.
    strays: markers that do not fit, some of `STRAYS`. "others-KIND": its attempts also create such a marker for every
    other file of the group, which other writes made; "as-KIND": their own marker is of that kind.
    """

    partition: str = ""
    group: str = "f0"
    kind: str = "CREATE"
    copies: int = 1
    slow_ms: int = 0
    strays: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write of the driver to a table, or a service of a table instead, after those before it in the plan.

    table: index into `Plan.tables`. after_ms: how long the driver waits. abandon: it gives up when the tasks are done.
    markers: "" for the mode of the plan, else its own; `NO_SERVER` for timeline-server markers without that server.
    faults: indexes into `Plan.faults` of those of this write alone, for a released Hudi; name: its name in counts.
    """

    tasks: tuple[Task, ...] = ()
    table: int = 0
    markers: str = ""
    after_ms: int = 0
    abandon: bool = False
    faults: tuple[int, ...] = ()
    name: str = ""
    service: Literal["", Service] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """Properties of a table that a released Hudi writes, with rows drawn from the plan's seed.

    Before its first write, and after each one that is not abandoned, there is a write without faults, and an audit.
    version6: a 1.x writer keeps that version; upgrades: and later drivers do not. small_files: new rows join the small
    file of a partition. cluster: executors are processes. deletes: each write after the first deletes rows. lazy: a
    failed write is rolled back after the next commit. grows: the second write begins a partition. rests: the third one
    and later ones leave the first alone. resends: a request to the timeline server is repeated. writers: how many write
    at once, 0 for one by one. sharing: their lock and strategy. future: the steps after that. harmless: others before.
    """

    metadata: bool = False
    version6: bool = False
    partitions: Partitions = "plain"
    small_files: bool = True
    index: Literal["SIMPLE", "BLOOM"] = "SIMPLE"
    cluster: bool = False
    deletes: bool = False
    lazy: bool = False
    grows: bool = False
    upgrades: bool = False
    resends: bool = False
    rests: bool = False
    writers: int = 0
    sharing: Sharing = "default"
    future: tuple[FutureStep, ...] = ()
    harmless: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierLife:
    """The content of a table of the kit's worlds before the run: the groups of its first tasks, and what is around.

    commits: completed ones; instants: how theirs look: times of 17 digits, of 14 as before 0.10, or what bootstrapped
    tables begin with. logs: the last of these is a deltacommit, of log files.
    archived: commits not on the timeline any more, whose files are there; version8: in the folders of table version 8.
    left: the action of an unfinished instant with files and markers, "" for none.
    """

    commits: int = 1
    instants: Instants = "millis"
    logs: bool = False
    archived: int = 0
    version8: bool = False
    left: Action = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that determines one run.

    jitter: 0 for uniform latencies, else the number that all latencies are derived from.

    Marker stores alone are driven by `ops` on `directories`; write clients by `writes` on `tables`, with that many
    `executors` (executor-0 and on) of one core each.

    merge_on_read: what the tables are; a copy-on-write table turns an APPEND into a MERGE.
    embedded: the timeline server dies with the driver, as in Hudi.
    restart_threads: num_threads of the servers after the first, where that is less; 0 for the same.
    shape: of the table, where a released Hudi writes one; None for the kit's worlds and for servers.
    earlier: the first content of the tables of writes, None for none.
    """

    mode: str = "timeline"
    storage: str = "s3"
    num_threads: int = 2
    interval_ms: int = 50
    directories: tuple[str, ...] = ("t/.hoodie/.temp/001",)
    ops: tuple[Op, ...] = ()
    tables: tuple[str, ...] = ("t",)
    writes: tuple[Write, ...] = ()
    merge_on_read: bool = False
    executors: int = 2
    embedded: bool = True
    faults: tuple[Fault, ...] = ()
    jitter: int = 0
    seed: int = 0
    restart_threads: int = 0
    shape: TableShape | None = None
    earlier: EarlierLife | None = None

    @property
    def entries(self) -> int:
        """The number of operations, tasks (one of a write without any), faults and steps of a future; shrunk first."""
        counted = (self.ops, self.faults, self.shape.future if self.shape else ())
        return sum(map(len, counted)) + sum(max(1, len(write.tasks)) for write in self.writes)

    @property
    def single_ops(self) -> tuple[Op, ...]:
        """The operations with each client of a crowd listed separately."""
        return tuple(each for op in self.ops for each in op.single())

    @property
    def asked(self) -> int:
        """The number of operations that clients perform."""
        return sum(op.copies for op in self.ops)

    def earlier_by(self, before: Plan) -> Plan:
        """The plan with faults moved earlier in proportion to its fewer operations; a late fault would never arm."""
        faults = tuple(fault.at(max(1, fault.n * self.asked // max(1, before.asked))) for fault in self.faults)
        return replace(self, faults=faults)

    def probes(self, mode: str) -> tuple[Op, ...]:
        """The requests of a fresh client after all faults are healed.

        In each directory a create a batch file, the first one once more, then a list.
        """
        ops = []
        for directory in range(len(self.directories)):
            for number in (*range(self.num_threads + 1 if mode == "timeline" else 1), 0):
                name = f"probe/{directory}-{number}.parquet.marker.CREATE"
                ops.append(Op(actor=PROBE, kind="create", directory=directory, name=name))
            ops.append(Op(actor=PROBE, kind="list", directory=directory))
        return tuple(ops)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, defaults left out of the entries so that it reads well."""
        out: dict[str, Any] = {name: value for name in _PLAN_FIELDS if (value := getattr(self, name)) is not None}
        out["schema"] = SCHEMA
        out["directories"] = list(self.directories)
        out["tables"] = list(self.tables)
        out["ops"] = [_entry(op, _OP_DEFAULTS) for op in self.ops]
        out["writes"] = [
            _entry(write, _WRITE_DEFAULTS) | {"tasks": [_entry(task, _TASK_DEFAULTS) for task in write.tasks]}
            for write in self.writes
        ]
        out["faults"] = [fault.to_dict() for fault in self.faults]
        return out | {name: asdict(out[name]) for name in ("shape", "earlier") if name in out}

    @staticmethod
    def from_dict(raw: dict[str, Any], origin: str = "plan") -> Plan:
        """The inverse of `to_dict`; UsageError says what is wrong with a plan written by hand."""
        if not isinstance(raw, dict) or raw.keys().isdisjoint(_SAYS_PLAN):
            raise UsageError(
                f"{origin} is not a plan: it has none of the keys {', '.join(_SAYS_PLAN)};"
                " `marker-sim verify` writes one as plan.json"
            )
        schema, kinds = raw.get("schema", SCHEMA), get_type_hints(Plan)
        if schema != SCHEMA:
            raise UsageError(
                f"{origin} has schema {schema!r}, this version reads {SCHEMA}; use the marker-sim that wrote it"
            )
        strange = sorted(raw.keys() - kinds.keys() - {"schema"})
        if strange:
            raise UsageError(f"{origin} is not a plan: it has a key {strange[0]!r}; accepted are {', '.join(kinds)}")
        del kinds["faults"]  # Faults have their own reader.
        known = {
            name: read_as(kind, raw[name], f"{origin} is not a plan: {name}")
            for name, kind in kinds.items()
            if name in raw
        }
        try:
            faults = tuple(
                Fault.from_dict(fault) for fault in read_as(tuple[Any, ...], raw.get("faults", []), "faults")
            )
        except (TypeError, ValueError, UsageError) as error:
            raise UsageError(f"{origin} is not a plan: {error}; `marker-sim verify` writes one as plan.json") from error
        plan = Plan(**known, faults=faults)
        plan.check(origin)
        return plan

    def check(self, origin: str = "plan") -> None:  # noqa: C901
        """UsageError for a plan that no world can run."""
        problems = [f"mode {self.mode!r} is none of {MODES}"] if self.mode not in MODES else []
        if self.storage not in STORAGES:
            problems.append(f"storage {self.storage!r} is none of {STORAGES}")
        if not self.directories and not self.writes:
            problems.append("it names no marker directory")
        for op in self.ops:
            if op.kind not in OPERATIONS:
                problems.append(f"operation {op.kind!r} is none of {OPERATIONS}")
            if not 0 <= op.directory < len(self.directories):
                problems.append(f"operation directory {op.directory} is not one of {len(self.directories)}")
            if not 1 <= op.copies <= COPIES_MAX:
                problems.append(f"operation copies {op.copies} is not between 1 and {COPIES_MAX}")
            forms = ("", *SPELLINGS, *(MALFORMED if op.kind == "hostile" else ()))
            if op.spelled not in forms:
                problems.append(f"operation {op.kind} spelled {op.spelled!r} is none of {forms}")
            if op.form not in ("", *REQUEST_FORMS):
                problems.append(f"operation form {op.form!r} is none of {REQUEST_FORMS}")
            if _LONE.search(op.name):
                problems.append(f"operation name {op.name!r} is neither text nor bytes")
        problems += [problem for fault in self.faults if (problem := fault.problem())]
        problems += self._problems_of_writes() if self.writes else []
        if self.earlier is not None and min(self.earlier.commits, self.earlier.archived) < 0:
            problems.append("commits and archived of an earlier life are whole numbers, 0 or more")
        if self.executors < 1:
            problems.append("executors must be at least 1")
        if self.num_threads < 1 or self.interval_ms < 1 or self.restart_threads < 0:
            problems.append("num_threads and interval_ms must be at least 1, restart_threads at least 0")
        if problems:
            raise UsageError(f"{origin} cannot run: " + "; ".join(sorted(set(problems))))

    def _problems_of_writes(self) -> list[str]:  # noqa: C901
        problems = []
        for table in self.tables:
            try:
                parse_directory(MarkerDirectory(table, "0").path)
            except ValueError as error:
                problems.append(f"{table!r} is no table: {error}")
            if any(part == ".hoodie" for part in table.split("/")):
                problems.append(f"{table!r} is no table: it lies below .hoodie")
        for write in self.writes:
            if not 0 <= write.table < len(self.tables):
                problems.append(f"write table {write.table} is not one of {len(self.tables)}")
            if not all(0 <= number < len(self.faults) for number in write.faults):
                problems.append(f"write faults {list(write.faults)} are not of {len(self.faults)}")
            if write.markers not in ("", *MODES, NO_SERVER):
                problems.append(f"write markers {write.markers!r} is none of {(*MODES, NO_SERVER)}")
            for task in write.tasks:
                table = self.tables[write.table] if 0 <= write.table < len(self.tables) else ""
                place = f"{table}/{task.partition}/"
                if any(place.startswith(f"{other}/") and other.startswith(f"{table}/") for other in self.tables):
                    problems.append(f"partition {task.partition!r} of {table!r} lies in another table")
                if task.kind not in TASK_KINDS:
                    problems.append(f"task kind {task.kind!r} is none of {TASK_KINDS}")
                strange = (stray for stray in task.strays if stray not in STRAYS)
                problems += [f"task stray {stray!r} is none of {STRAYS}" for stray in strange]
                why = "the group has a slash" if "/" in task.group else _not_a_file(task)
                if why:
                    problems.append(f"partition {task.partition!r} and group {task.group!r} make no file: {why}")
            numbers = [write.after_ms, *(n for task in write.tasks for n in (task.copies, task.slow_ms))]
            if any(number < 0 for number in numbers):
                problems.append("after_ms, copies and slow_ms are whole numbers, 0 or more")
        return problems


def _not_a_file(task: Task) -> str:
    """The reason why a task's file cannot lie below a table, "" when it can."""
    name = marker_name(task.partition, f"{task.group}-0_0-0-0_0.parquet", MarkerType.CREATE)
    try:
        check_marker_name(name)
    except ValueError as error:
        return str(error)
    return "it lies below .hoodie" if name.startswith(".hoodie/") else ""


_PLAN_FIELDS = tuple(f.name for f in fields(Plan))
_OP_DEFAULTS = tuple((f.name, f.default) for f in fields(Op))
_TASK_DEFAULTS = tuple((f.name, f.default) for f in fields(Task))
_WRITE_DEFAULTS = tuple((f.name, f.default) for f in fields(Write) if f.name != "tasks")


def _entry(value: Op | Task | Write, defaults: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {n: list(v) if isinstance(v, tuple) else v for n, default in defaults if (v := getattr(value, n)) != default}


def write_plan(plan: Plan, path: Path) -> None:
    """Write a plan as indented JSON, with bytes that are not UTF-8 escaped."""
    text = json.dumps(plan.to_dict(), indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def read_plan(path: Path) -> Plan:
    """The plan in a file; UsageError when it is none."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read as a plan: {error}") from error
    return Plan.from_dict(raw, str(path))
