"""A Hudi table on disk as one looks at it with ls: file names, timeline entries, and what damages do to them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_BASE = re.compile(r"(.+)_(\d+-\d+-\d+)_(\d+)(\.parquet|\.orc|\.hfile)\Z")
_LOG = re.compile(r"\.(.+)_(\d+)\.log\.(\d+)_(\d+-\d+-\d+)\Z")
_ENTRY = re.compile(r"(\d+)(?:_(\d+))?\.([a-z]+)(?:\.([a-z]+))?\Z")
_INSTANTS = re.compile(rb"2\d{16}|0{10,}\d+")
WRITES = ("commit", "deltacommit")
DAY_S = 86_400
BATCHED = b"TIMELINE_SERVER_BASED"


class Unfit(Exception):
    """The table has nothing that the damage could happen to."""


class BaseName(NamedTuple):
    """The name of a base file."""

    file_id: str
    token: str
    instant: str
    suffix: str

    @staticmethod
    def of(path: Path) -> BaseName:
        """Of a path that is one."""
        match = _BASE.match(path.name)
        assert match is not None, path
        return BaseName(*match.groups())

    def with_token(self, token: str) -> str:
        """The name of another attempt's file."""
        return f"{self.file_id}_{token}_{self.instant}{self.suffix}"


class LogName(NamedTuple):
    """The name of a log file. instant: its own from table version 8 on, its base file's before."""

    file_id: str
    instant: str
    version: str
    token: str

    @staticmethod
    def of(path: Path) -> LogName:
        """Of a path that is one."""
        match = _LOG.match(path.name)
        assert match is not None, path
        return LogName(*match.groups())

    def with_token(self, token: str) -> str:
        """The name of another attempt's file."""
        return f".{self.file_id}_{self.instant}.log.{self.version}_{token}"


class TimelineFile(NamedTuple):
    """An entry of the active timeline. state: requested, inflight or completed."""

    path: Path
    instant: str
    action: str
    state: str


class Disk:
    """A table."""

    def __init__(self, table: Path) -> None:
        self.table = table
        hoodie = table / ".hoodie"
        self.timeline = hoodie / "timeline" if (hoodie / "timeline").is_dir() else hoodie
        self.temp = hoodie / ".temp"

    def relative(self, path: Path) -> str:
        """A path below the table."""
        return str(path.relative_to(self.table))

    def entries(self) -> list[TimelineFile]:
        """The active timeline, oldest first."""
        found = []
        for path in sorted(self.timeline.iterdir()):
            match = _ENTRY.match(path.name)
            if match is not None and path.is_file():
                instant, _, action, state = match.groups()
                if action == "inflight":
                    action, state = "commit", "inflight"
                found.append(TimelineFile(path, instant, action, state or "completed"))
        return found

    def instants(self) -> set[str]:
        """All of them."""
        found = {each.instant for each in self.entries()}
        if not found:
            raise Unfit("the timeline is empty")
        return found

    def newest_write(self) -> TimelineFile:
        """The newest completed commit or delta commit of a write that made files which nothing has replaced since."""
        done = [each for each in self.entries() if each.state == "completed"]
        replaced = max((each.instant for each in done if each.action in ("replacecommit", "restore")), default="")
        of_files = {BaseName.of(path).instant for path in self.bases()} | {
            LogName.of(path).instant for path in self.logs()
        }
        for each in reversed(done):
            requested = self.timeline / f"{each.instant}.{each.action}.requested"
            if each.action in WRITES and each.instant in of_files and requested.exists() and each.instant > replaced:
                return each
        raise Unfit("the timeline has no write whose files are the newest")

    def data_files(self) -> Iterator[Path]:
        """Everything in the partitions."""
        for path in sorted(self.table.rglob("*")):
            if path.is_file() and ".hoodie" not in path.relative_to(self.table).parts and path.suffix != ".crc":
                yield path

    def bases(self) -> list[Path]:
        """All base files."""
        return [path for path in self.data_files() if _BASE.match(path.name)]

    def logs(self) -> list[Path]:
        """All log files but those of change data."""
        return [path for path in self.data_files() if _LOG.match(path.name)]

    def is_newest_of_group(self, path: Path) -> bool:
        """Whether no later base file is in its group."""
        name = BaseName.of(path)
        return not any(
            each.file_id == name.file_id and each.instant > name.instant for each in map(BaseName.of, self.bases())
        )

    def newest_bases(self) -> list[Path]:
        """The base files of the newest write, in order; of a group that has no later one."""
        instant = self.newest_write().instant
        made = [path for path in self.bases() if BaseName.of(path).instant == instant]
        found = [path for path in made if self.is_newest_of_group(path)]
        if not found:
            raise Unfit("the newest write made no base file")
        return found

    def newest_logs(self) -> list[Path]:
        """The log files of the newest slices that writes made; rollbacks make others before table version 8."""
        latest: dict[str, str] = {}
        for name in map(BaseName.of, self.bases()):
            latest[name.file_id] = max(name.instant, latest.get(name.file_id, ""))
        done = [each for each in self.entries() if each[2:] == ("deltacommit", "completed")]
        said = [each.path.read_bytes() for each in done]
        newer = self.timeline.name == "timeline"
        found = [
            path
            for path in self.logs()
            if (log := LogName.of(path)).instant >= latest.get(log.file_id, "")
            and (
                any(log.instant == each.instant for each in done)
                if newer
                else any(f'"path" : "{self.relative(path)}"'.encode() in each for each in said)
            )
        ]
        if not found:
            raise Unfit("the newest slices have no log files")
        return found[-2:]

    def has_archive(self) -> bool:
        """Whether commits were archived."""
        hoodie = self.table / ".hoodie"
        older = any(hoodie.glob("archived/.commits*")) or any(hoodie.glob("history/.commits*"))
        return older or any(hoodie.glob("timeline/history/*.parquet"))

    def free_instant(self) -> str:
        """An instant right before the newest write, which the timeline does not have."""
        instant = self.newest_write().instant
        found = str(int(instant) - 1).zfill(len(instant))
        if any(found in path.name for path in self.table.rglob("*")):
            raise Unfit("the instant before the newest write is taken")
        return found

    def marker_names(self, instant: str) -> tuple[str, ...]:
        """The markers that a write of these files had."""
        names = []
        for path in self.bases():
            if BaseName.of(path).instant == instant:
                first = sum(BaseName.of(each).file_id == BaseName.of(path).file_id for each in self.bases()) == 1
                names.append(f"{self.relative(path)}.marker.{'CREATE' if first else 'MERGE'}")
        names += [f"{self.relative(path)}.marker.CREATE" for path in self.logs() if LogName.of(path).instant == instant]
        return tuple(names)

    def undo_commit(self, least: int) -> tuple[str, tuple[str, ...]]:
        """Put the newest write back to right before its commit; it and the markers that it had, without making them."""
        write = self.newest_write()
        entries = [each for each in self.entries() if each.state == "completed" and each.instant > write.instant]
        if entries:
            raise Unfit("other actions follow the newest write")
        names = self.marker_names(write.instant)
        if len(names) < least:
            raise Unfit(f"the newest write made fewer than {least} files")
        self.remove(write.path)
        return write.instant, names

    def put_markers(
        self, instant: str, names: Iterable[str] = (), *, raw: bytes | None = None, kind: bytes | None = BATCHED
    ) -> None:
        """A marker directory as a timeline server leaves it. kind: of MARKERS.type, None for no such file."""
        folder = self.temp / instant
        self.put(folder / "MARKERS0", "".join(f"{name}\n" for name in names).encode() if raw is None else raw)
        if kind is not None:
            self.put(folder / "MARKERS.type", kind)

    def rolled_back(self) -> tuple[str, str]:
        """The instant that a completed rollback took back, and the rollback."""
        known = {each.instant for each in self.entries() if each.action != "rollback"}
        for each in reversed(self.entries()):
            if each.action == "rollback" and each.state == "completed":
                for found in _INSTANTS.findall(each.path.read_bytes()):
                    target = found.decode()
                    if target not in known and target < each.instant:
                        return target, each.instant
        raise Unfit("the timeline has no completed rollback")

    def put(self, path: Path, data: bytes) -> None:
        """Write a file, without the checksum that Hadoop would write beside it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def cut(self, path: Path, size: int) -> None:
        """Make a file shorter; a checksum beside it stays as it was."""
        with path.open("r+b") as file:
            file.truncate(size)

    def age(self, days: int) -> None:
        """Let every file be as if it had been written so many days earlier."""
        for path in self.table.rglob("*"):
            then = path.stat().st_mtime - days * DAY_S
            os.utime(path, (then, then))

    def remove(self, path: Path) -> None:
        """Delete a file and the checksum beside it."""
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
