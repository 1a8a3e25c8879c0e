"""`judge`: judges a stored history with today's judges. Nothing is run and nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from marker_sim.cli import options as given
from marker_sim.errors import UsageError
from marker_sim.history import History, read_jsonl
from marker_sim.judges import judge as judge_history
from marker_sim.judges.baselines.baseline import load_baseline
from marker_sim.judges.guarantees import parse_guarantees
from marker_sim.judges.promises.profiles import Profile, load_profile, parse_profile
from marker_sim.outcome.failure import failures_in
from marker_sim.outcome.result import Campaign
from marker_sim.outcome.statistics import Statistics
from marker_sim.report.columns import read_parquet
from marker_sim.report.directory import newest_earlier
from marker_sim.report.table import output_console, print_outcome
from marker_sim.report.verdict import judge_campaign

HISTORIES = (".jsonl", ".parquet")


def judge(
    context: typer.Context,
    path: given.JudgedHistory,
    guarantees: given.Guarantees = None,
    profile: given.Promises = None,
    expect: given.Expect = None,
    as_json: given.Json = False,
    verbose: given.Verbose = False,
) -> int:
    """Judge a stored history again."""
    only = None if guarantees is None else parse_guarantees(guarantees)
    baseline = None if expect is None else load_baseline(expect)
    history = read_history(path)
    promises = _profile_of(history, path, profile)
    findings = judge_history(history, only)
    statistics = Statistics()
    statistics.add(history, findings)
    campaign = Campaign(
        sut=history.header.sut,
        sut_version=history.header.sut_version,
        seed=history.header.seed,
        duration_s=(history.events[-1].time_ns - history.events[0].time_ns) / 1e9 if history.events else 0.0,
        statistics=statistics,
        failures=tuple(failures_in(history, findings, promises).values()),
        last=history,
    )
    outcome = judge_campaign(campaign, promises, baseline, path, context.obj, only)
    if as_json:
        print(json.dumps(outcome.to_dict(), indent=1))
    else:
        print_outcome(outcome, output_console(), "", verbose)
    return outcome.exit_code()


def read_history(path: Path) -> History:
    """The history in a file or in a report directory; UsageError when there is none."""
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
    return read_parquet(path) if path.suffix == ".parquet" else read_jsonl(path)


def _profile_of(history: History, path: Path, given: str | None) -> Profile:
    """The profile that was given, else the one by which a history was judged."""
    if given is not None:
        return load_profile(given)
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
