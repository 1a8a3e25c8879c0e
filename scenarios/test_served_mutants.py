"""Mutants of serve/: the change is in the server's process alone, a broken one is killed, and the reference is not."""

from __future__ import annotations

import shlex
import subprocess
import sys

import psutil
import pytest

from marker_sim.errors import UsageError
from marker_sim.judges import judge
from properties.faces.judges import load_profile
from tools.generated_mutants.generated import KILLED, NO_MUTANT, TROUBLE, possible
from tools.generated_mutants.served import GROUNDS, MODULES, OPTIONS, USUAL, hunt_served, play
from tools.generated_mutants.served_start import find_change
from tools.generated_mutants.syntax import Change

LOCAL = GROUNDS[:1]


def change_of(module: str, function: str, kind: str, before: str) -> Change:
    known = (module, function, kind, before)
    return next(c for c in possible(MODULES) if (c.module, c.function, c.kind, c.before) == known)


def test_a_server_that_says_true_to_all_is_killed_and_leaves_nothing() -> None:
    change = change_of("serve.app", "encode", "negated", "body is True")
    outcome = hunt_served(change, 1, 1, LOCAL)
    assert outcome.how == KILLED and outcome.guarantee and outcome.message and outcome.plan is not None
    assert not any(change.key in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


def test_the_reference_is_not() -> None:
    start = shlex.join([sys.executable, "-m", "marker_sim"])
    profile = load_profile("http")
    (played,) = play(f"{start} {OPTIONS}", LOCAL[0], range(1), 1)
    found = judge(played.history)
    assert not [breach for each in found for breach in profile.broken_by(each, "timeline", "local")]
    assert {each.guarantee for each in found if each.judged} >= {*USUAL} - {"G10"}  # It has no deletion.


def test_a_server_that_does_not_start_is_trouble_and_one_that_cannot_be_imported_is_no_mutant() -> None:
    deaf = change_of("serve.runtime", "LoopMailbox.__init__", "deleted", "self._runtime = runtime")
    outcome = hunt_served(deaf, 1, 1, LOCAL)
    assert outcome.how == TROUBLE and "ended with exit code 4" in outcome.message
    nameless = change_of("serve.runtime", "LoopMailbox", "constant", '"_items"')
    outcome = hunt_served(nameless, 1, 1, LOCAL)
    assert outcome.how == NO_MUTANT and outcome.message.startswith("TypeError")


def test_only_the_module_of_the_change_is_another() -> None:
    change = change_of("serve.app", "MarkerApp.parse", "constant", "400")
    said = (
        "import sys; from tools.generated_mutants import served_start as s; s.start(sys.argv[1:]);"
        "from marker_sim.serve import app, bases; from marker_sim.seams import Request;"
        "print(app.MarkerApp.parse.__code__.co_consts.count(401), bases.__loader__.__class__.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", said, change.key], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "SourceFileLoader"]


@pytest.mark.parametrize("key", ["", "app", "app-0000000000", "nothing-0000000000"])
def test_an_unknown_key_is_one_sentence(key: str) -> None:
    with pytest.raises(UsageError, match="there is no change"):
        find_change(key)
