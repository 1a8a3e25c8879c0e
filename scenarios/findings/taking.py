"""A stored failure of a report as a finding."""

from __future__ import annotations

import json
import shlex
import time
from contextlib import suppress
from pathlib import Path

from marker_sim.cli.handing_over import failure_description
from marker_sim.cli.stored import failures_at
from marker_sim.errors import UsageError
from marker_sim.judges.baselines.baseline import load_baseline
from marker_sim.judges.guarantees import GUARANTEES
from marker_sim.report.scripts.shell_script import shell_script
from scenarios.findings.stored_finding import StoredFinding


def taken(path: Path, name: str, budget: str) -> StoredFinding:
    """The failure of a plan in a report, for a story; `name` is "" for the one that the shipped baselines name.

    budget: what the campaign was given, which its report does not say; "" for the default.

    UsageError for what is no such plan, or is of several stories.
    """
    began = time.monotonic()
    stored = failures_at(path)[0]
    told = failure_description(stored, None)
    with suppress(UsageError):  # The document says why there is none.
        shell_script(told)
    script_s = time.monotonic() - began
    report = next((folder for folder in path.parents[:2] if (folder / "verdict.json").is_file()), None)
    if report is None:
        raise UsageError(f"{path} lies in no report; give a plan below the report directory of a verify")
    verdict = json.loads((report / "verdict.json").read_text(encoding="utf-8"))
    known = load_baseline(f"hudi-{told.version}-{told.plan.storage}")
    stories = {
        each.story.partition("#")[2] for each in known if (each.guarantee, each.cause) == (told.guarantee, stored.cause)
    }
    if not name and len(stories) != 1:
        raise UsageError(
            f"{path} breaks {told.guarantee} by {stored.cause or 'no known cause'}, which is"
            f" {' or '.join(sorted(stories)) or 'no story'}; say which with --story"
        )
    words = ["marker-sim", "verify", "--sut", told.sut, "--storage", told.plan.storage, "--seed", str(verdict["seed"])]
    words += ["--budget", budget] if budget else []
    judged = [row["id"] for row in verdict["guarantees"]]
    words += ["--guarantees", ",".join(judged)] if len(judged) < len(GUARANTEES) // 2 else []
    return StoredFinding(
        name=name or stories.pop(),
        guarantee=told.guarantee,
        cause=stored.cause,
        sut=told.sut,
        version=told.version,
        kit_version=told.kit_version,
        message=told.message,
        also=told.also,
        evidence=told.evidence,
        often=told.often,
        command=shlex.join(words),
        after_s=round(verdict["duration_s"] + script_s),
        plan=told.plan.to_dict(),
    )
