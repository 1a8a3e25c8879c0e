"""The content of a plan's tables before the run: completed, archived and unfinished instants with files. Pure.

An archived commit has left the timeline, and its files are committed for ever. Our write client knows the timeline of
layout 6 alone, so files of commits in the folders of table version 8 are like those of archived ones to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from marker_sim.names import (
    TYPE_BATCHED,
    TYPE_FILE,
    MarkerDirectory,
    MarkerType,
    encode_names,
    marker_file,
    marker_name,
)
from marker_sim.plan import EarlierLife, Plan
from marker_sim.timeline import (
    COMMIT,
    DELTA_COMMIT,
    HOODIE,
    Entry,
    State,
    WriteStat,
    WriteToken,
    base_file_name,
    encode_commit,
    log_file_name,
)
from marker_sim.writer.slices import RowFormat

GROUPS = 3
COMPLETED, ARCHIVED, LEFT = "completed", "archived", "left"
_FIRST = {"millis": 20240101000000000, "seconds": 20240101000000, "bootstrap": 1}
_ARCHIVED_FIRST = {"millis": 20230101000000000, "seconds": 20230101000000, "bootstrap": 0}


@dataclass(slots=True, kw_only=True)
class EarlierInstant:
    """One instant that a table has before the run.

    state: COMPLETED, ARCHIVED or LEFT.
    paths: of its data files, relative to the table.
    files: what it stored, by full path, in this order.
    """

    instant: str
    state: str
    paths: tuple[str, ...] = ()
    files: list[tuple[str, bytes]] = field(default_factory=list)


def earlier_instants(plan: Plan, number: int, mode: str, rows_as: RowFormat) -> Iterator[EarlierInstant]:
    """The earlier instants of a table, archived ones first, an unfinished one last; none where nothing is written.

    number: of the table. mode: of the markers of the unfinished one, "" to leave that out.
    """
    tasks = [task for write in plan.writes if write.table == number for task in write.tasks]
    groups = tuple(dict.fromkeys((task.partition, task.group) for task in tasks))[:GROUPS]
    if plan.earlier is not None and groups:
        yield from _EarlierLife(plan.earlier, plan.tables[number], groups, rows_as).instants(mode)


@dataclass(eq=False)
class _EarlierLife:
    life: EarlierLife
    table: str
    groups: tuple[tuple[str, str], ...]
    rows_as: RowFormat

    def __post_init__(self) -> None:
        self._rows: dict[tuple[str, str], dict[str, str]] = {}
        self._base = ""
        digits = 17 if self.life.instants == "millis" else 14
        self._named = [str(_FIRST[self.life.instants] + n).zfill(digits) for n in range(self.life.commits + 1)]
        self._old = [str(_ARCHIVED_FIRST[self.life.instants] + n).zfill(digits) for n in range(self.life.archived)]

    def instants(self, mode: str) -> Iterator[EarlierInstant]:
        kept = [self._archived(instant) for instant in self._old]
        yield from kept
        for number, instant in enumerate(self._named[:-1]):
            yield self._completed(instant, log=self.life.logs and number == self.life.commits - 1 > 0)
        if self.life.left and mode:
            yield self._left(self._named[-1], mode, [path for each in kept for path in each.paths])

    def _archived(self, instant: str) -> EarlierInstant:
        """An archived instant: a base file and a log file of a separate group, unknown to all writes of the plan."""
        partition, file_id, token = self.groups[0][0], f"archived{instant[-3:]}-0", WriteToken(0, 0, 0)
        names = (base_file_name(file_id, token, instant), log_file_name(file_id, instant, 1, token))
        paths = tuple(_below(partition, name) for name in names)
        made = EarlierInstant(instant=instant, state=ARCHIVED, paths=paths)
        stats = (WriteStat(partition, file_id, path, 1, "") for path in paths)
        hoodie, data = f"{self.table}/{HOODIE}", encode_commit(stats, {})
        if self.life.version8:
            made.files.append((f"{hoodie}/timeline/{instant}_{instant}.{DELTA_COMMIT}", data))
            made.files.append((f"{hoodie}/timeline/history/{instant}_{instant}_0.parquet", data))
        else:
            made.files.append((f"{hoodie}/archived/.commits_.archive.{int(instant[-3:]) + 1}_1-0-1", data))
            made.files.append((f"{hoodie}/{int(instant) + 500}.clean", b"Obj\x01"))  # An action that no write has.
        made.files += [self._data(path, {f"{path}/archived": "0"}, instant) for path in paths]
        return made

    def _completed(self, instant: str, log: bool) -> EarlierInstant:
        """A completed instant: every group gets a base file, or a log file on the one it has."""
        made = EarlierInstant(instant=instant, state=COMPLETED)
        stats = []
        for task, (partition, group) in enumerate(self.groups):
            own = {f"{partition}/{group}/{instant}": "0"}
            rows = self._rows.setdefault((partition, group), {})
            rows |= own
            file_id, token = f"{group}-0", WriteToken(task, 0, 0)
            name = log_file_name(file_id, self._base, 1, token) if log else base_file_name(file_id, token, instant)
            path = _below(partition, name)
            stats.append(WriteStat(partition, file_id, path, len(rows), self._base))
            made.files.append(self._data(path, own if log else rows, instant))
        self._base = self._base if log else instant
        made.paths = tuple(stat.path for stat in stats)
        entry = Entry(instant, DELTA_COMMIT if log else COMMIT, State.COMPLETED)
        made.files.insert(0, (entry.path(self.table), encode_commit(stats, {"write": "0"})))
        return made

    def _left(self, instant: str, mode: str, archived: list[str]) -> EarlierInstant:
        """An unfinished instant, in order: markers of its files and archived commits' files, its files, its entries."""
        made = EarlierInstant(instant=instant, state=LEFT)
        action, names, paths = self.life.left, [], []
        for task, (partition, group) in enumerate(self.groups):
            token = WriteToken(task, 0, 0)
            log = action == DELTA_COMMIT and bool(self._base)
            version = 2 if self.life.logs else 1
            name = (
                log_file_name(f"{group}-0", self._base, version, token)
                if log
                else base_file_name(f"{group}-0", token, instant)
            )
            kind = MarkerType.APPEND if log else MarkerType.MERGE if self._base else MarkerType.CREATE
            names.append(marker_name(partition, name, kind))
            paths.append(_below(partition, name))
        made.paths = tuple(paths)
        names += [marker_name("", path, MarkerType.APPEND) for path in archived]
        directory = MarkerDirectory(self.table, instant).path
        if mode == "timeline":
            made.files = [
                (f"{directory}/{TYPE_FILE}", TYPE_BATCHED),
                (f"{directory}/{marker_file(0)}", encode_names(names)),
            ]
        else:
            made.files = [(f"{directory}/{name}", b"") for name in names]
        made.files += [self._data(path, {f"{path}/left": "0"}, instant) for path in paths]
        for state in (State.REQUESTED, State.INFLIGHT):
            made.files.append((Entry(instant, action, state).path(self.table), b""))
        return made

    def _data(self, path: str, rows: dict[str, str], instant: str) -> tuple[str, bytes]:
        return f"{self.table}/{path}", self.rows_as.encode(rows, instant)


def _below(partition: str, name: str) -> str:
    return f"{partition}/{name}" if partition else name
