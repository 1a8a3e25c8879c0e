"""How a run of real processes is closed: what is stored is read, and the header says what a judge must know."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from marker_sim import __version__
from marker_sim.history import Event, Header, answer_bound_before_faults
from marker_sim.names import MarkerDirectory
from marker_sim.options import MarkerOptions, format_options
from marker_sim.plan import Plan
from marker_sim.seams import Capabilities
from marker_sim.system import System
from marker_sim.worlds.processes.parquet import PARQUET
from marker_sim.worlds.recorder import Recorder
from marker_sim.writer.slices import table_rows

STORAGE_TIMEOUT_MS = 1_000
_CAPABILITIES = ("put_if_absent", "put_if_unchanged", "atomic_replace", "host_lock", "batched_markers")


def observe(
    recorder: Recorder,
    files: Mapping[str, bytes],
    directories: Iterable[MarkerDirectory],
    tables: Iterable[str],
    names: Callable[[str], tuple[str, ...] | None],
) -> None:
    """Record every file and marker directory, and the rows that a reader of completed commits finds in each table.

    names: what a directory of `files` holds in a format that is not Hudi's, None in Hudi's.
    """
    record, began = recorder.record, recorder.mark()
    for path in sorted(files):
        record("kit", "kit", "observe", "file", path=path, value=files[path])
    for directory in directories:
        found = names(directory.path)
        record("kit", "kit", "observe", "snapshot", directory, directory.path, value=found, caused_by=began)
    for table in tables:
        value, error = None, None
        try:
            value = tuple(f"{key}={row}" for key, row in sorted(table_rows(table, files, PARQUET).items()))
        except ValueError as unreadable:
            error = str(unreadable)
        place: Any = (table, None)
        record("kit", "kit", "observe", "rows", place, value=value, error=error)


def header_of(
    world: Literal["real", "spark"],
    plan: Plan,
    system: System,
    options: MarkerOptions,
    capabilities: Capabilities,
    events: Iterable[Event],
    identity: bool,
) -> Header:
    """The header of a run; `plan` in it is the plan as it is here. identity: whether servers honour a create's."""
    return Header(
        world=world,
        mode="direct" if plan.mode == "direct" else "timeline",
        storage=plan.storage,
        sut=system.name,
        sut_version=system.version or __version__,
        kit_version=__version__,
        profile=system.profile,
        layout="hudi" if system.layout == "hudi" else "names",
        identity=identity,
        num_threads=plan.num_threads,
        late_effect_ms=capabilities.late_effect_ms,
        answer_bound_ms=answer_bound_before_faults(events),
        storage_timeout_ms=STORAGE_TIMEOUT_MS,
        seed=plan.seed,
        options=format_options(options),
        capabilities={name: getattr(capabilities, name) for name in _CAPABILITIES},
        plan=plan.to_dict(),
    )
