"""Histories of several writers of one table, by hand: `Shared` has a method for each thing that a writer does."""

from __future__ import annotations

import json
from typing import Any

from marker_sim.history import Event, Header, History
from marker_sim.judges import Finding, judge

TABLE = "t"
TIMELINE = ".hoodie/timeline"
REFUSED = "HoodieException <- HoodieWriteConflictException <- java.util.ConcurrentModificationException"
REFUSED_EARLY = "HoodieUpsertException <- HoodieEarlyConflictDetectionException"
UNREAD = "HoodieUpsertException <- HoodieIOException: IOException occurs during checking marker file conflict"


def instant(number: int) -> str:
    """An instant that is short to write."""
    return f"{20260101000000000 + number}"


def data_file(group: str, number: int) -> str:
    """The base file of a group "partition/id" that an instant writes."""
    return f"{group}-0_0-1-0_{instant(number)}.parquet"


class Shared:
    """Instants are numbers; the writer of number 1 is "writer-1" unless `by` says another."""

    def __init__(self, **options: str) -> None:
        self.header = Header(
            world="java", storage="local", mode="direct", profile="hudi-spark", options={"writers": "2", **options}
        )
        self.events: list[Event] = []
        self.asked: dict[int, int] = {}

    def add(self, process: str, kind: Any, operation: str, role: str = "driver", **columns: Any) -> int:
        index = len(self.events)
        self.events.append(Event(index, index * 1_000_000, process, role, kind, operation, **columns))
        return index

    def put(self, number: int, path: str, content: bytes | None = b"{}", by: int = 0) -> int:
        how = "delete" if content is None else "put"
        return self.add(f"writer-{by or number}", "effect", how, path=f"{TABLE}/{path}", value=content)

    # What a writer does.

    def ask(self, number: int, *rows: str) -> None:
        self.asked[number] = self.add(
            f"writer-{number}", "invoke", "write", table=TABLE, instant="", value=rows or (f"k{number}=w{number}",)
        )

    def request(self, number: int, *rows: str, beat: bool = True) -> int:
        """A write is asked for, and its instant begins."""
        self.ask(number, *rows)
        if beat:
            self.beat(number)
        return self.put(number, f"{TIMELINE}/{instant(number)}.commit.requested", b"")

    def beat(self, number: int) -> int:
        return self.put(number, f".hoodie/.heartbeat/{instant(number)}", b"")

    def stop(self, number: int) -> int:
        return self.put(number, f".hoodie/.heartbeat/{instant(number)}", None)

    def expire(self, number: int) -> int:
        return self.add(f"writer-{number}", "fault", "heartbeat-expired", "nemesis", instant=instant(number))

    def inflight(self, number: int) -> int:
        return self.put(number, f"{TIMELINE}/{instant(number)}.inflight", b"")

    def mark(self, number: int, group: str, content: bytes | None = b"") -> int:
        return self.put(number, f".hoodie/.temp/{instant(number)}/{data_file(group, number)}.marker.MERGE", content)

    def data(self, number: int, group: str, content: bytes | None = b"PAR1", by: int = 0) -> int:
        return self.put(number, data_file(group, number), content, by)

    def complete(self, number: int, content: bytes | None = b"{}", by: int = 0) -> int:
        return self.put(number, f"{TIMELINE}/{instant(number)}_{instant(number + 500)}.commit", content, by)

    def end(self, number: int, error: str = "", kind: str = "ok") -> int:
        return self.add(
            f"writer-{number}", "info" if error else kind, "write", table=TABLE,
            instant=instant(number), error=error or None, caused_by=self.asked[number],
        )  # fmt: skip

    def start(self, number: int, *groups: str) -> None:
        """An instant is inflight, with markers and files of some groups."""
        self.request(number)
        self.inflight(number)
        for group in groups:
            self.mark(number, group)
            self.data(number, group)

    def whole(self, number: int, *groups: str, rows: tuple[str, ...] = ()) -> None:
        """A whole write that nobody disturbs."""
        self.request(number, *rows)
        self.inflight(number)
        for group in groups:
            self.data(number, group)
        self.complete(number)
        self.stop(number)
        self.end(number)

    def plan(self, number: int, target: int, *files: str, by: int = 0) -> int:
        """A rollback of an instant is requested."""
        groups = [{"partitionPath": file.rpartition("/")[0], "filesToBeDeleted": [file]} for file in files]
        body = {"instantToRollback": {"commitTime": instant(target)}, "RollbackRequests": groups}
        return self.put(number, f"{TIMELINE}/{instant(number)}.rollback.requested", json.dumps(body).encode(), by)

    def undo(self, number: int, by: int = 0) -> int:
        return self.put(number, f"{TIMELINE}/{instant(number)}.rollback.inflight", b"", by)

    def undone(self, number: int, by: int = 0) -> int:
        return self.put(number, f"{TIMELINE}/{instant(number)}_{instant(number + 500)}.rollback", b"{}", by)

    def without(self, index: int) -> Shared:
        """The same without one event."""
        other = Shared()
        other.header = self.header
        other.events = [
            event._replace(
                index=at, caused_by=None if event.caused_by is None else event.caused_by - (event.caused_by > index)
            )
            for at, event in enumerate(event for event in self.events if event.index != index)
        ]
        return other

    # Verdicts.

    def history(self) -> History:
        return History(self.header, tuple(self.events))

    def finding(self, guarantee: str) -> Finding:
        (finding,) = judge(self.history(), frozenset({guarantee}))
        return finding

    def holds(self, guarantee: str, judged: int = 1) -> None:
        finding = self.finding(guarantee)
        assert finding.applicable and finding.judged == judged and not finding.breaches and not finding.undecided, (
            finding
        )

    def breaks(self, guarantee: str, *words: str) -> str:
        finding = self.finding(guarantee)
        (breach,) = finding.breaches
        assert finding.judged
        assert all(word in breach.message for word in words) and breach.evidence, breach
        return breach.message

    def undecided(self, guarantee: str, excuse: str) -> None:
        """Nothing was accused, and one excuse decided, once."""
        finding = self.finding(guarantee)
        assert not finding.breaches and dict(finding.excused) == {excuse: 1}, finding
        assert finding.undecided or finding.judged
