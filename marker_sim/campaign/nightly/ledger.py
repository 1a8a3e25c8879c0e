"""The ledger of a chaos directory: JSON lines, appended and synced; the directory has one writer at a time.

    kind       when                             content
    chaos      the first line                   schema, sut, profile and seed of the directory
    night      a night begins                   night, budget_s, stages (name to share), missing, kit_version, sut,
                                                sut_version; of a foreign server also server and storages;
                                                on Spark spark_master, and tables when its runs are in tables
    unit       a unit was done                  night, stream, first, count, seconds, and the counts of units.py
    replayed   a stored failure was run again   night (0 outside nights), name, status
    pause      Ctrl-C or SIGTERM                night
    end        the budget was used up           night

`at` is the time of day in UTC, `clock_s` how much of the night's budget was used. A kill leaves at most one torn last
line; it is cut off at the next start, as if that unit had never been done.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError, UsageError
from marker_sim.surroundings.files import held, synced

SCHEMA = 1
NAME = "ledger.jsonl"
_LOCK = "lock"

Line = dict[str, Any]


@contextmanager
def writing(directory: Path) -> Iterator[Ledger]:
    """Open the ledger of a directory, created if missing, as its only writer.

    UsageError when there is another writer, or when the directory has files and no ledger.
    """
    with ExitStack() as stack:
        try:
            _refuse_other_files(directory)
            directory.mkdir(parents=True, exist_ok=True)
            stack.enter_context(held(directory / _LOCK))
        except BlockingIOError as error:
            raise UsageError(
                f"{directory} is in use by another marker-sim process; wait until it ends, or give another --dir"
            ) from error
        except OSError as error:
            raise UsageError(
                f"{directory} cannot be a chaos directory: {error.strerror}; give another --dir"
            ) from error
        yield stack.enter_context(closing(Ledger(directory)))


def _refuse_other_files(directory: Path) -> None:
    present = sorted(os.listdir(directory)) if directory.exists() else []
    if NAME not in present and present not in ([], [_LOCK]):
        raise UsageError(
            f"{directory} holds {present[0]!r} and is not a chaos directory; give an empty or a new directory as --dir"
        )


def read_lines(directory: Path) -> Iterator[Line]:
    """Every whole line of a ledger, oldest first, and none where there is no ledger; needs no lock.

    HarnessError for a damaged line or a ledger that cannot be read, UsageError for one of a newer schema.
    """
    path = directory / NAME
    if not path.exists():
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise HarnessError(f"{path} cannot be read: {error.strerror}; restore it, or give another --dir") from error
    with file:
        for number, text in enumerate(file, start=1):
            if not text.endswith(b"\n"):
                return
            try:
                line = json.loads(text)
                kind = line["kind"]
            except (ValueError, TypeError, KeyError) as error:
                raise HarnessError(f"line {number} of {path} is damaged ({error}); restore it") from error
            if number == 1 and (kind != "chaos" or line.get("schema", 0) > SCHEMA):
                raise UsageError(
                    f"{path} begins with {kind!r} of schema {line.get('schema')}; this version reads up to {SCHEMA}"
                )
            yield line


class Ledger:
    """An open ledger; a last line that a kill cut off is removed when it opens."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            self._file = os.open(directory / NAME, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise HarnessError(f"the ledger in {directory} cannot be opened: {error.strerror}") from error
        os.ftruncate(self._file, (directory / NAME).read_bytes().rfind(b"\n") + 1)
        synced(directory)

    @property
    def empty(self) -> bool:
        """Whether it has no lines yet."""
        return os.fstat(self._file).st_size == 0

    def append(self, kind: str, **content: Any) -> Line:
        """Add a line; it is on disk when this returns, and whole or removed when this raises."""
        line: Line = {"kind": kind, "at": datetime.now(UTC).isoformat(timespec="seconds"), **content}
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        end = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, data)
            if written != len(data):
                raise OSError(f"only {written} of {len(data)} bytes fit")
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, end)
            raise HarnessError(f"the ledger in {self.directory} cannot be written: {error}") from error
        return line

    def close(self) -> None:
        """Release the ledger; nothing can be appended after that."""
        os.close(self._file)
