"""The rules of a state machine that have to fire sooner or later."""

from __future__ import annotations

from properties.faces.campaign import JudgedExample


def declared(machine: type[JudgedExample]) -> tuple[str, ...]:
    """Names of rules, sorted, without faults that cannot happen on the storage of the machine."""
    rules = [entry.function for entry in machine.setup_state().rules]
    return tuple(sorted(f.__name__ for f in rules if not hasattr(f, "possible") or f.possible(machine)))
