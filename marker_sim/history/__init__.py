"""A history is the record of one run: a header and the events in order, one a row; read from and written to files.

index/  one history indexed once, for judges and statistics

Worlds write histories and judges read them. The columns of `Event`, and the fields that each kind of event uses, are a
contract: docs/history.md.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from marker_sim.errors import UsageError

SCHEMA = 1
Kind = Literal["invoke", "ok", "fail", "info", "effect", "fault", "observe"]
Value = str | bytes | bool | int | tuple[str, ...] | None
# Errors of `exited` when the kit ended a driver: its writes were done, or the last one exceeded its bound.
APPLICATION_ENDED = "its application ended"
NOT_GETTING_ON = "it did not get on with a write"
# An observation: a caller used an operation that `storage.capabilities` denies; its error names the operation.
UNSUPPORTED = "unsupported"
# The markers of a write that asks for timeline-server markers while its embedded timeline server is switched off.
NO_SERVER = "no-server"


class CallError(StrEnum):
    """How the error of a call begins; the rest of it is for people."""

    WAITED = "no answer"  # No server answered until its client stopped waiting.
    CUT = "no reply"  # None did, because the kit ended its connection, or kept the reply.
    RAISED = "raised "  # An error of no seam: the implementation's own.
    # The whole error of a write whose driver said nothing of it.
    DRIVER_DIED = "the driver died"
    DRIVER_SILENT = "the driver did not answer"
    RUN_OVER = "the run was over"


# The values of requests that a server may refuse with a 4xx: a deletion whose empty body comes in chunks (RFC 9110,
# 15.5.12), and a reading or deletion whose directory is written in another spelling.
IN_CHUNKS = "in chunks"
SPELLED = "in another spelling"

_BOUND_MS, _SAMPLES = 10_000, 20


def answer_bound_ms(taken_ms: Iterable[float]) -> int:
    """The bound of every-request-answered: max(10 s, 20 x the p99 latency before the first fault)."""
    taken = sorted(taken_ms)
    return _BOUND_MS if len(taken) < _SAMPLES else max(_BOUND_MS, int(20 * taken[int(len(taken) * 0.99)]))


class Event(NamedTuple):
    """One row; a tuple and not a dataclass because a run makes one for every step (measured: 4 times cheaper)."""

    index: int  # type: ignore[assignment]  # the column is contract; tuple.index is not used
    time_ns: int
    process: str
    role: str
    kind: Kind
    operation: str
    table: str | None = None
    instant: str | None = None
    path: str | None = None
    value: Value = None
    error: str | None = None
    caused_by: int | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The value where it is several texts, as of a listing, of rows or of facts; else none."""
        return self.value if isinstance(self.value, tuple) else ()


def answer_bound_before_faults(events: Iterable[Event]) -> int:
    """The bound of every-request-answered in milliseconds, from the creates of a run before its first fault."""
    asked: dict[int | None, int] = {}
    taken_ms = []
    for event in events:
        if event.kind == "fault":
            break
        if event.operation == "create" and event.kind == "invoke":
            asked[event.index] = event.time_ns
        elif event.operation == "create" and event.kind == "ok" and event.caused_by in asked:
            taken_ms.append((event.time_ns - asked[event.caused_by]) / 1e6)
    return answer_bound_ms(taken_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Facts about a run that a judge needs besides its events.

    witness: "effects" when every storage effect is in the history in order, "reads" when storage was read now and then.
    layout: "hudi" when marker files are in Hudi's format, "names" when snapshots carry the names.
    identity: whether a create carries a request identity that the server honours (our extension).
    late_effect_ms: how long after its time-out a storage request may still be applied.
    answer_bound_ms: the bound of every-request-answered, max(10 s, 20 x p99 before the faults).
    storage_timeout_ms: after which a storage call ends at the latest.
    promises: the profile itself where it is none of the shipped ones (judges/promises/profiles.py).
    """

    world: Literal["simulated", "real", "spark", "java", "foreign"] = "simulated"
    mode: Literal["direct", "timeline"] = "timeline"
    storage: str = "s3"
    sut: str = "reference"
    sut_version: str = ""
    kit_version: str = ""
    profile: str = "reference"
    witness: Literal["effects", "reads"] = "effects"
    layout: Literal["hudi", "names"] = "hudi"
    identity: bool = True
    num_threads: int = 20
    late_effect_ms: int = 0
    answer_bound_ms: int = _BOUND_MS
    storage_timeout_ms: int = 1_000
    seed: int = 0
    options: dict[str, str] = field(default_factory=dict)
    capabilities: dict[str, bool] = field(default_factory=dict)
    plan: dict[str, Any] | None = None
    promises: dict[str, Any] | None = None
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class History:
    """A finished run; immutable."""

    header: Header
    events: Sequence[Event]

    def lines(self) -> Iterator[str]:
        """The history as JSON lines, header first; equal histories give equal bytes in every process."""
        yield json.dumps(asdict(self.header), sort_keys=True, ensure_ascii=False)
        for event in self.events:
            row = event._asdict()
            row["value"] = encode_value(event.value)
            yield json.dumps(row, ensure_ascii=False)


def encode_value(value: Value) -> Any:
    """The JSON form of a value: bytes that are UTF-8 as {"text": ...}, other bytes as {"base64": ...}."""
    if isinstance(value, bytes):
        try:
            return {"text": value.decode("utf-8")}
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode("ascii")}
    return value


def decode_value(value: Any) -> Value:
    """The inverse of `encode_value`."""
    if isinstance(value, dict):
        if "text" in value:
            return str(value["text"]).encode("utf-8")
        return base64.b64decode(value["base64"])
    if isinstance(value, list):
        return tuple(value)
    return value  # type: ignore[no-any-return]


def write_jsonl(history: History, path: Path) -> None:
    """Write a history as JSON lines, UTF-8."""
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as out:
        for line in history.lines():
            out.write(line + "\n")


def read_jsonl(path: Path) -> History:
    """Read a history written by `write_jsonl` or by any program that keeps its format; UsageError names a bad line."""
    with path.open(encoding="utf-8", errors="surrogatepass") as source:
        return parse_lines(source, str(path))


def parse_lines(lines: Iterable[str], origin: str) -> History:
    """Parse a header line and event lines; unknown header keys are ignored so that newer files still open."""
    known = {f.name for f in fields(Header)}
    events: list[Event] = []
    header: Header | None = None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if header is None:
                header = Header(**{key: value for key, value in row.items() if key in known})
                continue
            row["value"] = decode_value(row.get("value"))
            if wrong := [key for key in row if key not in Event._fields]:
                raise ValueError(f"it has a key {wrong[0]!r}")
            if wrong := [key for key in Event._fields if key not in row and key not in Event._field_defaults]:
                raise ValueError(f"it has no key {wrong[0]!r}")
            events.append(Event(**row))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UsageError(
                f"{origin} line {number} is not a row of a history ({error}); a history is JSON lines,"
                " a header and then one event a line with the columns of docs/history.md"
            ) from error
    if header is None:
        raise UsageError(f"{origin} is empty; a history starts with a header line")
    if header.schema > SCHEMA:
        raise UsageError(f"{origin} has schema {header.schema}, this version reads up to {SCHEMA}; upgrade marker-sim")
    return History(header, tuple(events))
