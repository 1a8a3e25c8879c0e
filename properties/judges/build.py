"""Histories by hand: a builder that reads like what happened."""

from __future__ import annotations

from typing import Any

from marker_sim.history import Event, Header, History, Value
from marker_sim.judges import Breach, Finding, judge
from marker_sim.names import TYPE_BATCHED, encode_names

TABLE, INSTANT = "t", "001"
DIRECTORY = "t/.hoodie/.temp/001"
MS = 1_000_000


def marker(stem: str, kind: str = "CREATE") -> str:
    """A marker name that is short to write: marker("a") is p/a.parquet.marker.CREATE."""
    return f"p/{stem}.parquet.marker.{kind}"


class Story:
    """Events in the order of the calls, `step_ms` apart."""

    def __init__(self, step_ms: int = 1, **header: Any) -> None:
        self.header = Header(**{"num_threads": 2, "storage": "s3", **header})
        self.events: list[Event] = []
        self.files: dict[str, tuple[str, ...]] = {}
        self.step_ms = step_ms
        self.now_ms = 0
        self.server: int | None = None
        self.invoked: dict[int, Event] = {}

    @property
    def last(self) -> int:
        return len(self.events) - 1

    def add(self, kind: Any, operation: str, process: str = "kit", **columns: Any) -> int:
        self.now_ms += self.step_ms
        self.events.append(Event(len(self.events), self.now_ms * MS, process, "", kind, operation, **columns))
        return self.last

    def wait(self, duration_ms: int) -> Story:
        self.now_ms += duration_ms
        return self

    # Servers.

    def start(self, process: str = "server#1") -> int:
        self.server = self.add("observe", "started", process)
        return self.server

    def kill(self, process: str = "server#1") -> int:
        return self.fault("kill", process)

    def fault(self, kind: str, process: str = "server#1", **columns: Any) -> int:
        return self.add("fault", kind, process, **columns)

    def observe(self, what: str, **columns: Any) -> int:
        return self.add("observe", what, **columns)

    # Calls.

    def invoke(
        self, operation: str, name: str | None = None, value: Value = None, instant: str = INSTANT, **columns: Any
    ) -> int:
        columns = {"process": "client", "caused_by": self.server, **columns}
        at = self.add("invoke", operation, table=TABLE, instant=instant, path=name, value=value, **columns)
        self.invoked[at] = self.events[at]
        return at

    def end(self, invoke: int, kind: str, value: Value = None, error: str | None = None) -> int:
        call = self.invoked[invoke]
        columns = {"table": call.table, "instant": call.instant, "path": call.path, "caused_by": invoke}
        return self.add(kind, call.operation, call.process, value=value, error=error, **columns)

    def ask(self, name: str, identity: str | None = None, **columns: Any) -> int:
        """A create is invoked and arrives."""
        invoke = self.invoke("create", name, identity, **columns)
        self.arrive(invoke)
        return invoke

    def arrive(self, invoke: int) -> None:
        if self.server is not None:
            self.add("observe", "arrived", self.events[self.server].process, caused_by=invoke)

    def create(self, name: str, answer: str = "created", identity: str | None = None, file: int = 0) -> int:
        """A whole correct create: asked for, flushed, answered."""
        invoke = self.ask(name, identity)
        if answer == "created":
            self.flush(name, file=file)
        return self.end(invoke, "ok", answer)

    def delete(self, outcome: str = "ok") -> int:
        """A whole correct deletion."""
        invoke = self.invoke("delete")
        if outcome == "ok":
            self.remove()
        return self.end(invoke, outcome, True if outcome == "ok" else None)

    def list(self, *names: str, operation: str = "list") -> int:
        invoke = self.invoke(operation)
        return self.end(invoke, "ok", tuple(sorted(names)))

    # Storage.

    def put(self, path: str, content: bytes | None, process: str = "server#1", how: str = "put") -> int:
        return self.add("effect", how, process, path=path, value=content)

    def type_file(self, content: bytes | None = TYPE_BATCHED, directory: str = DIRECTORY) -> int:
        return self.put(f"{directory}/MARKERS.type", content)

    def flush(self, *names: str, file: int = 0, directory: str = DIRECTORY) -> int:
        """Append names to a marker file, writing the type file first when the directory has none."""
        if self.header.mode == "direct":
            return [self.put(f"{directory}/{name}", b"", "client") for name in names][-1]
        if not any(path.startswith(directory) for path in self.files):
            self.type_file(directory=directory)
        path = f"{directory}/MARKERS{file}"
        self.files[path] = (*self.files.get(path, ()), *names)
        return self.put(path, encode_names(self.files[path]))

    def remove(self, directory: str = DIRECTORY) -> None:
        for path in [path for path in self.files if path.startswith(directory)]:
            del self.files[path]
            self.put(path, None, how="delete")
        self.put(f"{directory}/MARKERS.type", None, how="delete")

    # Reads (witness "reads").

    def look(self, *names: str, error: str | None = None, began: int | None = None) -> int:
        """The kit reads storage and finds these names in MARKERS0."""
        began = self.last if began is None else began
        self.add("observe", "file", path=f"{DIRECTORY}/MARKERS.type", value=TYPE_BATCHED)
        self.add("observe", "file", path=f"{DIRECTORY}/MARKERS0", value=encode_names(names) if names else None)
        return self.add("observe", "snapshot", path=DIRECTORY, caused_by=began, error=error)

    # Verdicts.

    def history(self) -> History:
        return History(self.header, tuple(self.events))

    def finding(self, guarantee: str) -> Finding:
        (finding,) = judge(self.history(), frozenset({guarantee}))
        return finding

    def holds(self, guarantee: str) -> None:
        """Something was judged, and nothing was wrong."""
        finding = self.finding(guarantee)
        assert finding.applicable and finding.judged and not finding.breaches and not finding.undecided, finding

    def says_nothing(self, guarantee: str) -> Finding:
        """Nothing was judged, so it does not count as `holds`."""
        finding = self.finding(guarantee)
        assert not finding.breaches and (not finding.judged or finding.undecided), finding
        return finding

    def breaks(self, guarantee: str, under: str = "none", count: int = 1) -> Breach:
        """It is broken that many times, and the evidence are events of the history."""
        finding = self.finding(guarantee)
        assert len(finding.breaches) == count, finding
        breach = finding.breaches[0]
        assert breach.message and breach.evidence == tuple(sorted(breach.evidence)), breach
        assert all(0 <= index < len(self.events) for index in breach.evidence) and breach.evidence, breach
        assert breach.under == under, breach
        return breach


def begun(**header: Any) -> Story:
    """A story in which a server has started."""
    story = Story(**header)
    story.start()
    return story


def excused(story: Story, guarantee: str) -> dict[str, int]:
    """How often each excuse decided."""
    return dict(story.finding(guarantee).excused)


def only(story: Story, guarantee: str) -> Breach:
    """The one breach that there is."""
    (breach,) = story.finding(guarantee).breaches
    return breach
