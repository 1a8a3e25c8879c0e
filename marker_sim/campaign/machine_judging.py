"""One example of a state machine as a plan: judged, counted, and stored where it breaks a promise.

A failing example leaves its plan as a file in `plans`, by default `.hypothesis/marker-sim` of the project, beside
Hypothesis' example database, which git already ignores; a temporary directory of pytest would be deleted after three
sessions. The file of a guarantee is overwritten by each example that breaks it, and the last one that Hypothesis runs
is the shrunk one.
"""

from __future__ import annotations

import json
import shlex
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from marker_sim.campaign.failure import Failure
from marker_sim.campaign.pieces import NumberedRun, PieceResult, SearchSettings
from marker_sim.campaign.planned_runs import NOT_DETERMINISTIC
from marker_sim.campaign.runs import execute
from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind
from marker_sim.faults.row import BATCHED_STORAGES
from marker_sim.faults.table import drawable
from marker_sim.history import History
from marker_sim.judges.promises.profiles import Profile
from marker_sim.judges.violations import GuaranteeViolation, violation
from marker_sim.plan import Plan, write_plan
from marker_sim.system import System

COMPARE_EVERY = 4
PLAN_SHOWN_MAX = 3_000


def counted(body: Callable[..., Any]) -> Callable[..., Any]:
    """A rule that counts how often it ran."""

    @wraps(body)
    def run(self: JudgedExample, **drawn: Any) -> Any:
        self.seen.rules[body.__name__] += 1
        return body(self, **drawn)

    return run


def draw_fault(data: st.DataObject, kinds: tuple[FaultKind, ...]) -> tuple[FaultKind, dict[str, Any]]:
    """One of the kinds, with settings from its row of the table."""
    kind = data.draw(st.sampled_from(kinds), label="kind")
    drawn = {name: data.draw(st.sampled_from(choices), label=name) for name, choices in kind.row.settings.items()}
    return kind, drawn


@dataclass(slots=True, kw_only=True)
class SeenExamples:
    """What the examples of one machine came to, shrinking included.

    judged: the runs of all that were judged.
    rules: how often each ran.
    compared: examples whose plan was run at once as well.
    on_example: gets plan, history and steps of each example, which the machine then does not judge; None for nobody.
    """

    on_example: Callable[[Plan, History, int], None] | None = None
    judged: PieceResult = field(default_factory=PieceResult)
    rules: Counter[str] = field(default_factory=Counter)
    examples: int = 0
    writes: int = 0
    steps: int = 0
    compared: int = 0


class JudgedExample(RuleBasedStateMachine):
    """What every machine has: the system and the place of its class, and the judgement of a finished plan.

    key: what the names of its classes begin with.
    writes: whether its plans are of writes.
    """

    key: ClassVar[str] = ""
    writes: ClassVar[bool] = True
    system: ClassVar[System]
    profile: ClassVar[Profile]
    mode: ClassVar[str]
    storage: ClassVar[str]
    guarantees: ClassVar[frozenset[str] | None]
    plans: ClassVar[Path]
    seen: ClassVar[SeenExamples]

    def __init__(self) -> None:
        super().__init__()
        self._accused = False

    @classmethod
    def declared(cls) -> tuple[str, ...]:
        """The rules that have to fire sooner or later, sorted."""
        return tuple(sorted(entry.function.__name__ for entry in cls.setup_state().rules))

    @classmethod
    def can(cls, kind: FaultKind) -> bool:
        """Whether a fault can happen here; type files are Hudi's, other formats have none to damage."""
        damage = kind is FaultKind.TYPE_DAMAGED and cls.system.layout != "hudi"
        return not damage and kind.row.possible(cls.mode, cls.storage)

    @classmethod
    def kinds(cls, *families: str, role: str = "") -> tuple[FaultKind, ...]:
        """The faults of these families that can happen here, at a role ("" for any).

        Where no server batches markers, there is none to hit.
        """
        if role == "server" and not (cls.mode == "timeline" and cls.storage in BATCHED_STORAGES):
            return ()
        here = (kind for kind in drawable(cls.mode, cls.storage, writes=cls.writes) if kind.row.family in families)
        return tuple(kind for kind in here if role in ("", *kind.row.roles) and cls.can(kind))

    def judge_whole(self, plan: Plan, history: History, steps: int) -> None:
        """Judge the example that a plan makes; HarnessError when it gives another history the next time."""
        # The choice must not differ between two runs of one example, so it is made from the plan.
        if zlib.crc32(repr(plan).encode()) % COMPARE_EVERY == 0:
            self.seen.compared += 1
            if execute(plan, self.system)[0].events != history.events:
                raise HarnessError(NOT_DETERMINISTIC)
        if self.seen.on_example is not None:
            self.seen.on_example(plan, history, steps)
            return
        self._decide(plan, history)

    def _decide(self, plan: Plan, history: History) -> None:
        """Raise for the first promise that a finished history breaks, if there is one."""
        settings = SearchSettings(places=(), seed=0, guarantees=self.guarantees, profile=self.profile)
        run = NumberedRun(self.seen.judged.taken, plan, history, look=True)
        for failure in self.seen.judged.take(run, settings, self.system).values():
            self._accused = True
            raise self._violation(plan, failure)

    def _violation(self, plan: Plan, failure: Failure) -> GuaranteeViolation:
        """The exception for a failure, with the plan on disk and the command that runs it."""
        plain = violation(failure.history, failure.guarantee, failure.breach)
        shown = json.dumps(plan.to_dict(), ensure_ascii=False)
        lines = [str(plain)]
        if len(shown) <= PLAN_SHOWN_MAX:
            lines.append(f"plan: {shown}")
        try:
            path = self._store(plan, f"{failure.guarantee}-{type(self).__name__}.json")
            sut = "" if self.system.name == "reference" else f" --sut {shlex.quote(self.system.name)}"
            lines.append(f"replay: marker-sim replay {shlex.quote(str(path))}{sut}")
        except OSError as error:
            lines.append(f"its plan cannot be stored ({error}); write the one above to a file and replay that")
        return type(plain)("\n".join(lines), failure.breach)

    def _store(self, plan: Plan, name: str) -> Path:
        """Write the plan; a directory that is created for it is ignored by git, as Hypothesis does."""
        missing = [folder for folder in (self.plans, *self.plans.parents) if not folder.exists()]
        self.plans.mkdir(parents=True, exist_ok=True)
        if missing:
            (missing[-1] / ".gitignore").write_text("*\n", encoding="utf-8")
        write_plan(plan, self.plans / name)
        return self.plans / name
