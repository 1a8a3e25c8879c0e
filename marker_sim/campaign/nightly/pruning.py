"""Finds stored failures in a directory and moves fixed ones to `fixed/`; nothing is deleted.

In a chaos directory the ledger records the status of a replay for the next night. Elsewhere, for example in a
downloaded folder of failures, only the file is moved.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from marker_sim.campaign.nightly.failures import FOLDER, is_stored
from marker_sim.campaign.nightly.ledger import NAME, read_lines, writing
from marker_sim.campaign.nightly.page import write_summary
from marker_sim.campaign.nightly.totals import Totals
from marker_sim.outcome.failure import FIXED


def stored_files(place: Path) -> list[Path]:
    """The files of open failures in a chaos directory or in a folder of failures, or the file `place` itself."""
    if place.is_file():
        return [place] if _is_failure(place) else []
    chaos = _chaos_directory(place)
    folder = place if chaos is None else chaos / FOLDER
    return [file for file in sorted(folder.glob("*.json")) if _is_failure(file)]


class Pruned(NamedTuple):
    """The result of pruning. statuses: by file, of failures that ran again. moved: the new files of the fixed ones."""

    statuses: dict[Path, str]
    moved: list[Path]


@contextmanager
def pruning(place: Path) -> Iterator[Pruned]:
    """A context that records, at its end, the statuses that its block found, and moves fixed failures.

    UsageError when a chaos is running on the directory.
    """
    pruned, chaos = Pruned({}, []), _chaos_directory(place)
    if chaos is None:
        yield pruned
        for file, status in pruned.statuses.items():
            if status == FIXED:
                (file.parent / FIXED).mkdir(exist_ok=True)
                pruned.moved.append(file.parent / FIXED / file.name)
                os.replace(file, pruned.moved[-1])
        return
    with writing(chaos) as ledger:
        totals = Totals().add_all(read_lines(chaos))
        totals.failures.write(chaos)
        yield pruned
        for file, status in pruned.statuses.items():
            if file.stem in totals.failures.by_name:
                totals.add(ledger.append("replayed", night=0, name=file.stem, status=status))
                if status == FIXED:
                    pruned.moved.append(chaos / FOLDER / FIXED / file.name)
        totals.failures.write(chaos)
        if totals.nights:
            write_summary(totals, chaos)


def has_ledger(place: Path) -> bool:
    """Whether a directory is a chaos directory, or the failures folder of one."""
    return _chaos_directory(place) is not None


def _chaos_directory(place: Path) -> Path | None:
    """The chaos directory whose ledger has these failures, None where there is no ledger."""
    for directory in (place, place.parent):
        if (directory / NAME).is_file() and place in (directory, directory / FOLDER):
            return directory
    return None


def _is_failure(file: Path) -> bool:
    try:
        return is_stored(json.loads(file.read_bytes()))
    except (OSError, ValueError):
        return False
