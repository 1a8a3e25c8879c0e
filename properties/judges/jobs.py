"""Writes by hand: a story of drivers, executors and a timeline that tells a whole write in a few lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from marker_sim.history import Value
from marker_sim.names import MarkerType, data_path, marker_name
from marker_sim.timeline import (
    COMMIT,
    ROLLBACK,
    Entry,
    State,
    WriteStat,
    encode_commit,
    encode_rollback,
    parse_data_file,
)
from properties.judges.build import TABLE, Story

DRIVER, EXECUTOR = "driver#1", "executor#1"


def base(stem: str, instant: str = "001", token: str = "0-0-0", partition: str = "p") -> str:
    """A base file's path: base("a") is p/a_0-0-0_001.parquet."""
    return f"{partition}/{stem}_{token}_{instant}.parquet".lstrip("/")


def log(stem: str, base_instant: str, token: str = "0-0-0", version: int = 1) -> str:
    """A log file's path, with the instant of its base file."""
    return f"p/.{stem}_{base_instant}.log.{version}_{token}"


class Job(Story):
    """A story of writes with direct markers on an object store; every step is correct unless told otherwise."""

    def __init__(self, table: str = TABLE, **header: Any) -> None:
        super().__init__(**{"mode": "direct", **header})
        self.table = table
        self.driver = DRIVER
        self.markers: dict[str, list[str]] = {}

    # Steps, each by its two ends.

    def step(self, operation: str, instant: str | None, value: Value = None, **columns: Any) -> int:
        columns = {"process": self.driver, "table": self.table, **columns}
        at = self.add("invoke", operation, instant=instant, value=value, **columns)
        self.invoked[at] = self.events[at]
        return at

    def done(self, invoke: int, kind: str = "ok", error: str | None = None, instant: str | None = None) -> int:
        call = self.invoked[invoke]
        return self.add(
            kind,
            call.operation,
            call.process,
            table=call.table,
            instant=instant or call.instant,
            path=call.path,
            error=error,
            caused_by=invoke,
        )

    # Storage.

    def entry(
        self, instant: str, state: State = State.COMPLETED, content: bytes | None = b"", action: str = COMMIT
    ) -> int:
        """A timeline entry comes, or goes."""
        return self.put(Entry(instant, action, state).path(self.table), content, self.driver)

    def data(self, path: str, content: bytes | None = b"k=v\n", process: str = EXECUTOR) -> int:
        return self.put(f"{self.table}/{path}", content, process)

    def home(self, instant: str) -> str:
        return f"{self.table}/.hoodie/.temp/{instant}"

    # Marker calls.

    def mark(self, path: str, instant: str, kind: MarkerType = MarkerType.CREATE, process: str = EXECUTOR) -> int:
        """A whole create of a direct marker."""
        partition, _, name = path.rpartition("/")
        name = marker_name(partition, name, kind)
        invoke = self.step("create", instant, path=name, process=process)
        self.put(f"{self.home(instant)}/{name}", b"", process)
        self.markers.setdefault(instant, []).append(name)
        self.end(invoke, "ok", "created")
        return invoke

    def listing(
        self, instant: str, operation: str = "list", kind: str = "ok", error: str | None = None, process: str = ""
    ) -> int:
        invoke = self.step(operation, instant, process=process or self.driver)
        names = self.markers.get(instant, ())
        paths = [data_path(name) for name in names if name.endswith("APPEND") == (operation == "list-log")]
        value = tuple(sorted(names if operation == "list" else paths)) if kind == "ok" else None
        return self.end(invoke, kind, value, error)

    def delete_markers(self, instant: str) -> int:
        """A whole deletion; the index of its invocation."""
        invoke = self.step("delete", instant)
        for name in self.markers.pop(instant, ()):
            self.put(f"{self.home(instant)}/{name}", None, self.driver, how="delete")
        self.end(invoke, "ok", True)
        return invoke

    # Parts of a write.

    def begin(self, instant: str = "001", *rolled_back: str, driver: str = "") -> int:
        """A write begins, after the rollback of the given instants; the index of its invocation."""
        self.driver = driver or self.driver
        invoke = self.step("begin", None)
        for failed in rolled_back:
            self.roll_back(failed)
        self.entry(instant, State.REQUESTED)
        self.entry(instant, State.INFLIGHT)
        self.done(invoke, instant=instant)
        return invoke

    def attempt(self, path: str, instant: str = "001", process: str = EXECUTOR, marker: bool = True) -> str:
        """An attempt: its marker, its file; returns the path."""
        file = parse_data_file(path)
        assert file is not None
        invoke = self.step("attempt", instant, str(file.token), path=path, process=process)
        if marker:
            self.mark(path, instant, MarkerType.CREATE if file.version is None else MarkerType.APPEND, process)
        self.data(path, process=process)
        self.done(invoke)
        return path

    def finalize(self, instant: str, *accepted: str, stray: Iterable[str] = ()) -> int:
        """The markers are listed and stray files deleted; the index of the first listing's invocation."""
        invoke = self.step("finalize", instant, tuple(sorted(accepted)))
        listed = self.last + 1
        self.listing(instant, "list-data")
        self.listing(instant, "list-log")
        for path in stray:
            self.data(path, None, self.driver)
        self.done(invoke)
        return listed

    def complete(self, instant: str, *paths: str) -> int:
        """The completed commit comes into storage."""
        files = [(path, parse_data_file(path)) for path in paths]
        stats = [WriteStat(f.partition, f.file_id, path, 1, "") for path, f in files if f is not None]
        return self.entry(instant, State.COMPLETED, encode_commit(stats, {}))

    def commit(self, instant: str, *paths: str, tidy: bool = True) -> int:
        """The completed commit, then the markers' deletion; the index of the effect."""
        invoke = self.step("commit", instant, tuple(sorted(paths)))
        at = self.complete(instant, *paths)
        self.done(invoke)
        if tidy:
            self.delete_markers(instant)
        return at

    def roll_back(self, instant: str, *left: str, record: str = "", tidy: bool = True, listing: str = "ok") -> int:
        """A whole rollback that deletes what the markers name, but for what is left; the index of its invocation."""
        record = record or f"{instant}9"
        invoke = self.step("rollback", instant)
        content = encode_rollback(instant, COMMIT)
        self.entry(record, State.REQUESTED, content, ROLLBACK)
        self.entry(record, State.INFLIGHT, content, ROLLBACK)
        self.listing(instant, kind=listing, error=None if listing == "ok" else "500")
        for name in self.markers.get(instant, ()):
            if data_path(name) not in left:
                self.data(data_path(name), None, self.driver)
        self.entry(instant, State.INFLIGHT, None)
        self.entry(instant, State.REQUESTED, None)
        self.entry(record, State.COMPLETED, content, ROLLBACK)
        if tidy:
            self.delete_markers(instant)
        self.done(invoke)
        return invoke

    def write(self, instant: str, *stems: str, driver: str = "") -> tuple[str, ...]:
        """A whole write that goes well; its paths."""
        self.begin(instant, driver=driver)
        paths = tuple(self.attempt(base(stem, instant, f"{n}-0-0"), instant) for n, stem in enumerate(stems))
        self.finalize(instant, *paths)
        self.commit(instant, *paths)
        return paths

    def failed(self, instant: str = "001", *stems: str) -> tuple[str, ...]:
        """A write whose driver dies when its files are there; its paths."""
        self.begin(instant)
        paths = tuple(self.attempt(base(stem, instant, f"{n}-0-0"), instant) for n, stem in enumerate(stems or ("a",)))
        self.kill(self.driver)
        return paths
