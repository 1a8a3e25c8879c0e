"""A door in a directory of a test: rules that strike at a call, and what was shown in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from properties.faces.worlds import CallOutcome, Decision, Door, DoorCommand, FileCall

ENDS_S = 60.0
Rule = Callable[[FileCall], Decision | None]


@dataclass(slots=True, eq=False)
class Seen:
    """Every call with its outcome, in order; `rules` say what becomes of one, the first that says anything."""

    rules: Sequence[Rule] = ()
    calls: list[FileCall] = field(default_factory=list)
    outcomes: list[tuple[FileCall, CallOutcome]] = field(default_factory=list)

    def decide(self, call: FileCall) -> Decision:
        self.calls.append(call)
        decisions = [rule(call) for rule in self.rules]
        return next((decision for decision in decisions if decision is not None), Decision())

    def applied(self, call: FileCall, outcome: CallOutcome) -> None:
        self.outcomes.append((call, outcome))

    def told(self) -> list[tuple[str, str]]:
        return [(call.operation, call.path) for call in self.calls]

    def door(self, root: Path, *, reads: bool = False) -> Door:
        return Door(root, self.decide, self.applied, reads=reads)


def at(operation: str, pattern: str, n: int, decision: Decision) -> Rule:
    """A decision for the n-th call of a kind on a path."""
    count = [0]

    def rule(call: FileCall) -> Decision | None:
        if call.operation != operation or not re.search(pattern, call.path):
            return None
        count[0] += 1
        return decision if count[0] == n else None

    return rule


def run(door: Door, root: Path, *words: str, process: str = "server-1") -> tuple[int, str]:
    """How a command ended that works in the root, and what it said."""
    command = door.start(words, {}, process=process, folder=root)
    return ended(command)


def ended(command: DoorCommand) -> tuple[int, str]:
    said = command.popen.communicate(timeout=ENDS_S)[0].decode()
    return command.popen.returncode, said


def at_work(root: Path) -> list[str]:
    """Processes whose working directory is the root."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and os.readlink(f"/proc/{name}/cwd") == str(root):
                found.append(name)
        except OSError:
            continue
    return found


def python(code: str) -> tuple[str, ...]:
    """The words that run a text as a program."""
    return sys.executable, "-I", "-S", "-c", code


def program(tmp_path: Path, name: str, *words: str) -> str:
    """A program that is built outside of the root; skips where its compiler is not here."""
    try:
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    except FileNotFoundError:
        pytest.skip(f"needs {words[0]} on PATH")
    return str(tmp_path / name)
