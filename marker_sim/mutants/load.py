"""The catalogue of all mutants, and a System of mutated source: modules of the reference, imported afresh."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib.abc import InspectLoader
from pathlib import Path
from types import ModuleType

from marker_sim.errors import UsageError
from marker_sim.mutants import Mutant
from marker_sim.mutants.codec import CODEC
from marker_sim.mutants.found import FOUND
from marker_sim.mutants.rolling_back import ROLLING_BACK
from marker_sim.mutants.serving import SERVING
from marker_sim.mutants.storing import STORING
from marker_sim.mutants.writing import WRITING
from marker_sim.system import System

__all__ = ["MUTANTS", "Mutant"]

MUTANTS = (*CODEC, *SERVING, *STORING, *WRITING, *ROLLING_BACK, *FOUND)
# The modules of the reference, in the order of their imports; seams and store stay shared, so that
# exceptions and answers are the same classes in the world.
MODULES = (
    "marker_sim.names",
    "marker_sim.timeline",
    "marker_sim.markers.choice",
    "marker_sim.markers.several",
    "marker_sim.markers.files",
    "marker_sim.markers.batches",
    "marker_sim.markers.direct",
    "marker_sim.markers.server",
    "marker_sim.markers.protocol",
    "marker_sim.markers.client",
    "marker_sim.writer.slices",
    "marker_sim.writer.records",
    "marker_sim.writer.attempt",
    "marker_sim.writer.client",
    "marker_sim.writer.stage",
)
# Classes that the world catches, or sends between processes, must be the same in both.
SHARED = {
    "marker_sim.timeline": ("WriteStat", "WriteToken"),
    "marker_sim.writer.slices": ("Slice",),
    "marker_sim.writer.attempt": ("Assignment",),
    "marker_sim.writer.stage": ("Attempt", "JobFailed", "Message"),
}


def find_mutant(name: str) -> Mutant:
    """The mutant of a name; UsageError names the nearest ones."""
    for mutant in MUTANTS:
        if mutant.name == name:
            return mutant
    near = get_close_matches(name, [mutant.name for mutant in MUTANTS], cutoff=0.0)
    raise UsageError(
        f"there is no mutant {name!r} among the {len(MUTANTS)} of marker_sim/mutants; the nearest are {', '.join(near)}"
    )


def load_mutant(*mutants: Mutant) -> System:
    """The reference with the changes of a mutant, or of several in one class; AssertionError when a text to change is
    not there exactly once.
    """

    def changed(module: str, text: str) -> str:
        for where, before, after in (change for mutant in mutants for change in mutant.changes):
            if module == f"marker_sim.{where}":
                assert text.count(before) == 1, f"{before!r} is there {text.count(before)} times"
                text = text.replace(before, after)
        return text

    return load_changed("+".join(mutant.name for mutant in mutants), changed)


def load_changed(name: str, changed: Callable[[str, str], str]) -> System:
    """The reference with changes. name: of the mutant. changed: (module, its text) -> the text to import instead."""
    fresh: dict[str, ModuleType] = {}
    kept = {module: sys.modules[module] for module in MODULES if module in sys.modules}
    try:
        for module in MODULES:
            fresh[module] = _import(module, name, changed)
            for shared in SHARED.get(module, ()):
                setattr(fresh[module], shared, getattr(kept[module], shared))
    finally:
        for module in MODULES:
            sys.modules.pop(module, None)
        sys.modules.update(kept)
        _rebind_packages(kept)
    return System(
        name=f"mutant:{name}",
        direct=fresh["marker_sim.markers.direct"].direct_markers,
        server=fresh["marker_sim.markers.server"].served_markers,
        choose=fresh["marker_sim.markers.choice"].choose_mode,
        client=fresh["marker_sim.markers.client"].TimelineMarkers,
        handle=fresh["marker_sim.markers.protocol"].handle,
        write_client=fresh["marker_sim.writer.client"].WriteClient,
        write_file=fresh["marker_sim.writer.attempt"].write_file,
        stage=fresh["marker_sim.writer.stage"].Stage,
    )


def source_of(module: str) -> tuple[str, str]:
    """The path of a module's source, and its text."""
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    return spec.origin, Path(spec.origin).read_text(encoding="utf-8")


def _import(module: str, name: str, changed: Callable[[str, str], str]) -> ModuleType:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    made = importlib.util.module_from_spec(spec)
    origin, text = source_of(module)
    mutated = changed(module, text)
    sys.modules[module] = made
    same = isinstance(spec.loader, InspectLoader) and mutated == text and spec.loader.get_code(module)
    exec(same or compile(mutated, f"{origin} [{name}]", "exec"), made.__dict__)
    return made


def _rebind_packages(modules: dict[str, ModuleType]) -> None:
    """Restore submodules as attributes of their packages, which importing the changed copies may have replaced."""
    for name, module in modules.items():
        package, _, attribute = name.rpartition(".")
        setattr(importlib.import_module(package), attribute, module)
