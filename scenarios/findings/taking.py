"""A stored failure of a report as a finding, and how often its plan fails."""

from __future__ import annotations

import json
import re
import shlex
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from marker_sim.errors import UsageError
from properties.faces.campaign import broken_in
from properties.faces.cli import failure_description, failures_at
from properties.faces.judges import GUARANTEES, load_baseline, load_profile
from properties.faces.report import script_of
from properties.faces.targets import CampaignRequest, ServerOptions, parse_target
from scenarios.findings.stored_finding import StoredFinding, read_findings

RUN_S, TABLE_RUN_S = 120.0, 400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a report does not say of the commands of which it came.

    budget: of `verify`, "" for the default. walk: the words of `benchmarks/server_walk.py`, which it was instead.
    shrunk: the words of `shrink` after it, "" for none.
    """

    budget: str = ""
    walk: str = ""
    shrunk: str = ""


def taken(path: Path, name: str, found: Found) -> StoredFinding:
    """The failure of a plan in a report, for a story; `name` is "" for the one that the shipped baselines name.

    UsageError for what is no such plan, or is of several stories.
    """
    began = time.monotonic()
    stored = failures_at(path)[0]
    told = failure_description(stored, None)
    with suppress(UsageError):  # The document says why there is none.
        script_of(told)
    script_s = time.monotonic() - began
    report = next((folder for folder in path.parents[:2] if (folder / "verdict.json").is_file()), None)
    if report is None:
        raise UsageError(f"{path} lies in no report; give a plan below the report directory of a verify")
    verdict = json.loads((report / "verdict.json").read_text(encoding="utf-8"))
    known = load_baseline(f"hudi-{told.version}-{told.own_plan.storage}")
    stories = {
        re.split("[#/]", each.story)[-1].removesuffix(".md")
        for each in known
        if (each.guarantee, each.cause) == (told.guarantee, stored.cause)
    }
    if not name and len(stories) != 1:
        raise UsageError(
            f"{path} breaks {told.guarantee} by {stored.cause or 'no known cause'}, which is"
            f" {' or '.join(sorted(stories)) or 'no story'}; say which with --story"
        )
    words = ["python", "benchmarks/server_walk.py"] if found.walk else ["marker-sim", "verify"]
    words += ["--sut", told.sut, "--storage", told.own_plan.storage, "--seed", str(verdict["seed"])]
    words += [*shlex.split(found.walk), "--out", "DIR"] if found.walk else []
    words += ["--budget", found.budget] if found.budget else []
    command, name = shlex.join(words), name or stories.pop()
    judged = [row["id"] for row in verdict["guarantees"]]
    few = len(judged) < len(GUARANTEES) // 2
    command += f" --guarantees {','.join(judged)}" if few and not found.walk else ""
    command += f"; marker-sim shrink DIR/{path.relative_to(report)} {found.shrunk}" if found.shrunk else ""
    old = next((each for each in read_findings() if each.name == name), StoredFinding(name=name))
    return StoredFinding(
        name=name,
        promises=old.promises,
        local=old.local,
        s3=old.s3,
        guarantee=told.guarantee or "",
        cause=stored.cause,
        sut=told.sut,
        version=told.version,
        kit_version=told.kit_version,
        message=told.message,
        also=told.also,
        evidence=told.lines,
        often=told.often,
        command=command,
        after_s=round(verdict["duration_s"] + script_s),
        plan=told.own_plan.to_dict(),
    )


def counted(stored: StoredFinding, sut: str, storage: str, runs: int) -> StoredFinding:
    """A finding with the number of runs in which its plan breaks the guarantee by its cause, on a version."""
    target = parse_target(sut)
    profile = load_profile(target.can.profile)
    plan, wanted = replace(stored.told.own_plan, storage=storage), (stored.guarantee, stored.cause)
    run_s = RUN_S if plan.shape is None else TABLE_RUN_S
    with TemporaryDirectory() as folder:
        request = CampaignRequest(
            target=target, modes=(plan.mode,), storages=(storage,), seed=plan.seed, profile=profile,
            budget_s=runs * run_s, server=ServerOptions(), report=Path(folder),
        )  # fmt: skip
        failed = 0
        with target.real_runs(request, lambda line: None) as opened:
            for _ in range(runs):
                broken = broken_in(opened.again(plan, time.monotonic() + run_s, True).history, plan, profile)
                failed += any((kind.guarantee, kind.cause) == wanted for kind in broken)
    often = f"{failed} of {runs}"
    found = (sut, storage) == (stored.sut, stored.told.own_plan.storage)
    said = f"breaks in {often} runs" if found else stored.often
    return replace(stored, counts={**stored.counts, f"{target.version} {storage}": often}, often=said)
