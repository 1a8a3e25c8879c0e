"""What is stored of a finding: the failure of a campaign with its plan, and what its script showed where it ran."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.plan import Plan
from marker_sim.report.scripts.table_script import script_of
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import ServerOptions

FOLDER = Path(__file__).parent / "stored"
_STEPS = re.compile(r"(?:#|//) -+ the steps -+\n(.*?)\n *(?:#|//) -+ how a step is done -+\n", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """A script that was run without the kit.

    sut: "hudi:VERSION"; storage: "local" or "s3".
    code: its exit code; last: its last line.
    steps: digest of its steps, by which a script that does something else by now is found out.
    """

    sut: str
    storage: str
    code: int
    last: str
    steps: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFinding:
    """A failure that stands for a story of docs/findings.md, of a timeline server or of the write path.

    name: anchor of the story's heading, and name of the file.
    promises: the guarantees that the story breaks; local, s3: the versions that have it there, in words.
    also: what else broke with the guarantee.
    evidence: lines of the history that prove it.
    often: how often the plan breaks it on the real server, "" where nobody counted.
    counts: the same by version and storage, of runs that broke the guarantee by this cause: "4 of 4".
    command: the campaign or walk that found it; after_s: seconds from its start until the script was there.
    by_hand: what of the plan was done by hand, "" for nothing.
    plan: as `Plan.to_dict` has it, None for a story that no campaign found.
    missed: what was tried without success, "" where there is a plan.
    transcript: lines of the first of the runs.
    """

    name: str
    promises: str = ""
    local: str = ""
    s3: str = ""
    guarantee: str = ""
    cause: str = ""
    sut: str = ""
    version: str = ""
    kit_version: str = ""
    message: str = ""
    also: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    often: str = ""
    counts: dict[str, str] = field(default_factory=dict)
    command: str = ""
    after_s: int = 0
    by_hand: str = ""
    missed: str = ""
    plan: dict[str, Any] | None = None
    ran: tuple[ScriptRun, ...] = ()
    transcript: tuple[str, ...] = ()

    @property
    def told(self) -> StoredPlan:
        """What a script and a text for an issue tracker are made of."""
        assert self.plan is not None, f"{self.name} has no plan"
        plan = Plan.from_dict(self.plan, f"the plan of {self.name}")
        profile = load_profile(parse_target(self.sut).can.profile)
        promise = profile.promise(self.guarantee, plan.mode, plan.storage, "none")
        return StoredPlan(
            guarantee=self.guarantee, plan=plan, sut=self.sut, server=ServerOptions(), also=self.also,
            message=self.message, lines=self.transcript, cause=self.cause, often=self.often, source=promise.source,
            version=self.version, kit_version=self.kit_version,
        )  # fmt: skip

    @property
    def in_java(self) -> bool:
        """Whether it is of Hudi's Java client, whose script needs that and a class path."""
        return self.sut.startswith("hudi-java:")

    @property
    def no_script(self) -> str:
        """Why no script can do the plan, "" when one can."""
        try:
            script_of(self.told)
        except UsageError as error:
            return str(error)
        return ""

    @property
    def steps(self) -> str:
        """The digest of the steps of its script, as it would be written now."""
        return steps_digest(script_of(self.told)[0])

    def with_run(self, run: ScriptRun, transcript: tuple[str, ...]) -> StoredFinding:
        """With a run in the place of an earlier one of the same version and storage, or as the last."""
        where = [(each.sut, each.storage) for each in self.ran]
        here = (run.sut, run.storage)
        ran = tuple(run if place == here else each for place, each in zip(where, self.ran, strict=True))
        ran = ran if here in where else (*ran, run)
        return replace(self, ran=ran, transcript=transcript if ran[0] is run else self.transcript)


def steps_digest(script: str) -> str:
    """Twelve hexadecimal digits for what a script does; the same while only the way it is done changes."""
    steps = _STEPS.search(script)
    assert steps is not None, "a script has a part for its steps"
    return sha256(steps[1].encode()).hexdigest()[:12]


def read_findings(folder: Path = FOLDER) -> tuple[StoredFinding, ...]:
    """Those of a folder, in the order of their names; UsageError for a file that is none."""
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            stored = msgspec.convert(json.loads(file.read_bytes()), StoredFinding)
        except (ValueError, msgspec.ValidationError) as error:
            raise UsageError(f"{file} is no stored finding: {error}; take one from a report with --take") from error
        if stored.name != file.stem or (stored.plan is None) != bool(stored.missed):
            raise UsageError(f"{file} is no stored finding: it needs its own name, and a plan or what was tried")
        found.append(stored)
    return tuple(found)


def write_finding(stored: StoredFinding, folder: Path = FOLDER) -> None:
    """As JSON, without what is empty."""
    content = {name: value for name, value in asdict(stored).items() if value not in ("", (), 0, None, {})}
    file = folder / f"{stored.name}.json"
    file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
