"""`judge`: judges a stored history with today's judges. Nothing is run and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from marker_sim.errors import UsageError
from marker_sim.history import History, read_jsonl
from marker_sim.judges import judge
from marker_sim.judges.baselines.baseline import load_baseline
from marker_sim.judges.findings import Finding
from marker_sim.judges.guarantees import parse_guarantees
from marker_sim.judges.promises.profiles import Profile, load_profile, parse_profile
from marker_sim.judges.sets.rules import GUARANTEES_BY_SETS
from marker_sim.outcome.failure import failures_in
from marker_sim.outcome.result import Campaign
from marker_sim.outcome.statistics import Statistics
from marker_sim.report.columns import read_parquet
from marker_sim.report.directory import newest_earlier
from marker_sim.report.page import headline
from marker_sim.report.table import output_console, print_outcome
from marker_sim.report.verdict import judge_campaign
from marker_sim.scale.parts import WHOLE_MAX, events_in, judge_in_parts
from marker_sim.scale.set_judging import find_facts, judge_facts, judge_history_by_sets, remote_facts
from marker_sim.surroundings.spark_session import parse_master

HISTORIES = (".jsonl", ".parquet")


def rejudge(
    path: Path,
    *,
    guarantees: str | None,
    profile: str | None,
    expect: str | None,
    as_json: bool,
    argv: Sequence[str],
    sets: bool = False,
    spark_master: str | None = None,
) -> int:
    """Judge a stored history, print the verdict, and return its exit code. Nothing is written.

    sets: only by differences of sets, as also for facts in a directory and with --spark-master.
    """
    only = None if guarantees is None else parse_guarantees(guarantees)
    baseline = None if expect is None else load_baseline(expect)
    parse_master(spark_master)
    facts = find_facts(path) if path.is_dir() else remote_facts(path) if spark_master is not None else None
    by_sets: dict[str, Any] = {}
    if sets or spark_master is not None or facts is not None:
        only = GUARANTEES_BY_SETS if only is None else only
        if not only <= GUARANTEES_BY_SETS:
            wrong, known = ", ".join(sorted(only - GUARANTEES_BY_SETS)), ", ".join(sorted(GUARANTEES_BY_SETS))
            raise UsageError(f"sets decide nothing about {wrong}; they judge {known}, so leave the others out")
        judged = judge_facts(facts, spark_master) if facts else judge_history_by_sets(history_in(path), spark_master)
        history = History(judged.header, ())
        promises = _profile_of(history, path) if profile is None else load_profile(profile)
        findings = tuple(each for each in judged.findings(promises) if each.guarantee in only)
        by_sets = {"sets": judged.to_dict()}
    elif _is_large(path):
        history, promises, findings = _judged_in_parts(history_in(path), profile, only)
    else:
        history = read_history(path)
        promises = _profile_of(history, path) if profile is None else load_profile(profile)
        findings = judge(history, only)
    statistics = Statistics()
    statistics.add(history, findings)
    campaign = Campaign(
        sut=history.header.sut,
        sut_version=history.header.sut_version,
        seed=history.header.seed,
        duration_s=(history.events[-1].time_ns - history.events[0].time_ns) / 1e9 if history.events else 0.0,
        runs=1,
        steps=0,
        statistics=statistics,
        failures=tuple(failures_in(history, findings, promises).values()),
        last=history,
    )
    outcome = judge_campaign(campaign, promises, baseline, path, argv, only)
    if as_json:
        print(json.dumps(outcome.to_dict() | by_sets, indent=1))
    else:
        alone = "by differences of sets alone: " if by_sets else ""
        print_outcome(outcome, output_console(), "", f"{alone}{headline(outcome)}")
    return outcome.exit_code()


def _is_large(path: Path) -> bool:
    """Whether a history is too large to be judged as a whole."""
    file = history_in(path)
    return file.suffix == ".parquet" and events_in(file) > WHOLE_MAX


def _judged_in_parts(
    path: Path, profile: str | None, only: frozenset[str] | None
) -> tuple[History, Profile, tuple[Finding, ...]]:
    """The header and findings of a history too large for memory. A table that is too large itself is judged by sets,
    whose breaches count where no other was found.
    """
    header, findings, complete = judge_in_parts(path, only)
    history = History(header, ())
    promises = _profile_of(history, path) if profile is None else load_profile(profile)
    if not complete:
        sets = {each.guarantee: each.breaches for each in judge_history_by_sets(path, None).findings(promises)}
        findings = tuple(replace(each, breaches=each.breaches or sets.get(each.guarantee, ())) for each in findings)
    return history, promises, findings


def read_history(path: Path) -> History:
    """The history in a file or in a report directory; UsageError when there is none."""
    path = history_in(path)
    return read_parquet(path) if path.suffix == ".parquet" else read_jsonl(path)


def history_in(path: Path) -> Path:
    """The file of a history that is given, or of the report directory; UsageError when there is none."""
    if path.is_dir():
        found = [path / name for name in ("history.parquet", "history.jsonl") if (path / name).is_file()]
        if not found:
            raise UsageError(
                f"{path} has no history.parquet and no history.jsonl; give a history or a report directory{see(path)}"
            )
        path = found[0]
    if not path.is_file():
        raise UsageError(f"{path} does not exist; give a history (.jsonl or .parquet) or a report directory")
    if path.suffix not in HISTORIES:
        raise UsageError(f"{path} is not a history; give a .jsonl or .parquet file or a report directory")
    return path


def _profile_of(history: History, path: Path) -> Profile:
    """The profile by which a history was judged."""
    header = history.header
    if header.promises is not None:
        return parse_profile(header.promises, f"the profile in {path}")
    try:
        return load_profile(header.profile)
    except UsageError as error:
        raise UsageError(
            f"{path} was judged by the profile {header.profile!r}, which is not stored in it; give its file with"
            " --profile"
        ) from error


def see(directory: Path) -> str:
    """The end of a sentence that says where a directory's earlier report is; "" when there is none."""
    earlier = newest_earlier(directory)
    return "" if earlier is None else f", such as {earlier}"
