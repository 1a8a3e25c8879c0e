"""Loads systems that run plans: the reference, mutants, any factory as `package.module:factory`, programs.

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

from marker_sim.command.pool import PREFIX
from marker_sim.command.system import program_system
from marker_sim.errors import UsageError
from marker_sim.markers.checked import Refuse, checked, refuse_at_once
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.system import System, reference

# Names that can be loaded; targets/table.py has the others of `--sut`.
NAMES = ("reference", "mutant:NAME", "package.module:factory", "command:COMMAND")


def load_system(sut: str, refuse: Refuse = refuse_at_once) -> System:
    """The system with a name; UsageError says what is accepted.

    refuse: receives the sentence about a foreign store that breaks the contract of return values.
    """
    if sut == "reference":
        return reference()
    if sut.startswith("mutant:"):
        return load_mutant(find_mutant(sut.removeprefix("mutant:")))
    if sut.startswith(PREFIX):
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
    target = getattr(module, attribute, None)
    if not isinstance(target, System):
        if not _takes_one(target):
            raise UsageError(
                f"--sut {sut}: {module_name} has no factory {attribute!r}; it needs a callable of one Context"
            )
        target = System(name=sut, direct=target, server=target, layout="names", profile="python")
    direct, server = (each and checked(each, sut, refuse) for each in (target.direct, target.server))
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
