"""Loads systems that run plans: the reference, mutants, any factory, by `package.module:factory` or itself, programs.

A factory takes a Context and returns a MarkerStore (markers/store.py). It is tried in the modes asked for: as the store
of executors and driver in direct mode, as the timeline server's store in timeline mode. An attribute that is a System
already keeps its factories and parts. The reader of a foreign format is a fresh instance on the same storage.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import replace
from inspect import signature
from reprlib import repr as shortened
from typing import Any

from marker_sim.command import PREFIX
from marker_sim.errors import UsageError
from marker_sim.markers.checked import Refuse, checked, refuse_at_once
from marker_sim.markers.store import Factory
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.system import System, reference

# Names that can be loaded; targets/table.py has the others of `--sut`.
NAMES = ("reference", "mutant:NAME", "package.module:factory", "command:COMMAND")


def load_system(sut: str | Factory | System, refuse: Refuse = refuse_at_once) -> System:
    """The system with a name, of a factory or as it is; UsageError says what is accepted.

    refuse: receives the sentence about a foreign store that breaks the contract of return values.
    """
    if not isinstance(sut, str):
        return _of_factory(sut, f"the system {name_of(sut)}", name_of(sut), refuse)
    if sut == "reference":
        return reference()
    if sut.startswith("mutant:"):
        return load_mutant(find_mutant(sut.removeprefix("mutant:")))
    if sut.startswith(PREFIX):
        from marker_sim.command.system import program_system  # Starting programs is for these systems alone.

        return program_system(sut.removeprefix(PREFIX))
    module_name, found, attribute = sut.partition(":")
    if not found or not module_name or not attribute:
        raise UsageError(f"--sut was given {sut!r}; write one of {', '.join(NAMES)}")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        # Also SystemExit: a script without a main guard would end the kit, perhaps with exit code 0.
        why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise UsageError(f"--sut {sut}: module {module_name!r} cannot be imported ({why})") from error
    target: Any = getattr(module, attribute, None)
    if not isinstance(target, System) and not _takes_one(target):
        raise UsageError(f"--sut {sut}: {module_name} has no factory {attribute!r}; it needs a callable of one Context")
    return _of_factory(target, f"--sut {sut}", sut, refuse)


def name_of(system: Factory | System) -> str:
    """The name of a factory or system: that by which it can be loaded, for a factory that other processes find."""
    if isinstance(system, System):
        return system.name
    module = getattr(system, "__module__", None) or type(system).__module__
    name = getattr(system, "__qualname__", None) or type(system).__qualname__
    return f"{module}:{name}"


def can_be_loaded(system: Factory | System) -> bool:
    """Whether other processes find a factory by its name: what `__main__`, a notebook or a function has they do not."""
    module, _, name = name_of(system).partition(":")
    return module != "__main__" and name != "" and getattr(sys.modules.get(module), name, None) is system


def _of_factory(target: Factory | System, given: str, name: str, refuse: Refuse) -> System:
    """The system of a factory, whose answers are checked. given: how it was given, for sentences."""
    if not isinstance(target, System):
        if not callable(target) or not _takes_one(target):
            raise UsageError(
                f"{given} is {shortened(target)}; give a class or function that takes one Context and returns a store,"
                " for every simulated process makes one"
            )
        target = System(name=name, direct=target, server=target, layout="names", profile="python")
    direct, server = (each and checked(each, given, refuse) for each in (target.direct, target.server))
    return replace(target, direct=direct, server=server)


def _takes_one(target: object) -> bool:
    """Whether it can be called with one argument, as far as its signature is known."""
    try:
        signature(target).bind(None)  # type: ignore[arg-type]
    except TypeError:
        return False
    except ValueError:  # Some functions in C have no signature.
        return True
    return True
