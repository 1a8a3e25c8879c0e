"""A `verify` request carried out: report directory, runs, verdict, files, exit code.

The plan of a violation of the simulated world can be run with real processes too, once by default, since it takes
seconds and not milliseconds. Races may end differently there, so a violation that does not occur again is still one: a
plan determines a run in the simulated world only. And storage is only read at intervals there, so a run may decide
nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from marker_sim.campaign.engine import run_campaign
from marker_sim.campaign.runs import MODES_AGREE
from marker_sim.cli import options as given
from marker_sim.cli.output import Progress, say
from marker_sim.cli.request import parse_request
from marker_sim.errors import EXIT_HARNESS, EXIT_VIOLATED, HarnessError, UsageError
from marker_sim.judges.promises.profiles import Profile
from marker_sim.outcome.failure import stories
from marker_sim.outcome.result import Campaign
from marker_sim.plan import Plan
from marker_sim.report.ci import NOTHING, ForCi
from marker_sim.report.directory import open_report
from marker_sim.report.table import output_console, print_outcome
from marker_sim.report.verdict import judge_campaign, with_leading_curve
from marker_sim.report.write import store_baseline, write_outcome
from marker_sim.surroundings.requirements import lacking
from marker_sim.surroundings.time_limit import REST_S, TimeLimit
from marker_sim.targets.table import DEFAULT
from marker_sim.targets.target import REAL_STORAGES, CampaignRequest

if TYPE_CHECKING:
    from marker_sim.campaign.comparison import Comparison
    from marker_sim.campaign.stored_plan import StoredPlan

REPORT = "marker-sim-report"
# A run with real processes takes seconds, too long for a search of a few seconds.
CAMPAIGN_SHARE = 0.4  # Of a budget in seconds, for each of two campaigns; the rest is for plans of one on the other.
CONFIRM_FROM_S = 30.0
CONFIRM_SHARE = 0.1  # Of the budget, which real processes need beyond it.
CONFIRMED = "confirmed with real processes"
NOT_REPRODUCED = "not reproduced with real processes"
HELD = "the guarantee was judged and held there, perhaps because of the order of events; it stays a violation"
UNDECIDED = "no event there decided the guarantee, so this proves nothing"
BY_PROCESSES = "confirmed by processes"
NOT_BY_PROCESSES = "not confirmed by processes, where it held in one try"
NOT_PLAYED = "processes could not play it"
SCRIPT_S, SCRIPTS_S = 120.0, 150.0  # For one script, and until the last one begins.
ERROR_MAX = 200
SIMULATED_ONLY = "shown in the simulated world only, because"


def verify(
    context: typer.Context,
    sut: given.Sut = DEFAULT,
    mode: given.Mode = "both",
    storage: given.Storage = None,
    budget: given.Budget = None,
    runs: given.Runs = None,
    seed: given.Seed = None,
    jobs: given.Jobs = None,
    stop_at_first: given.StopAtFirst = False,
    guarantees: given.Guarantees = None,
    profile: given.Promises = None,
    expect: given.Expect = None,
    write_baseline: given.WriteBaseline = None,
    against: given.Against = None,
    against_start: given.AgainstStart = None,
    report: given.Report = REPORT,
    start: given.Start = None,
    reader: given.Reader = None,
    dir_format: given.Form = None,
    identity: given.Identity = False,
    batch_threads: given.BatchThreads = None,
    writers: given.Writers = None,
    orders: given.Orders = False,
    services: given.Services = False,
    s3_endpoint: given.S3Endpoint = None,
    s3_bucket: given.S3Bucket = None,
    s3_access_key: given.S3AccessKey = None,
    s3_secret_key: given.S3SecretKey = None,
    junit: given.Junit = None,
    sarif: given.Sarif = None,
    github: given.Github = False,
    as_json: given.Json = False,
    verbose: given.Verbose = False,
) -> int:
    """Judge an implementation: runs, faults, verdict, report."""
    output = ("junit", "sarif", "github", "as_json", "verbose")
    words = {name: word for name, word in context.params.items() if name not in output}  # Every other option above.
    for_ci = ForCi(junit=junit, sarif=sarif, github=github)
    return carry_out(parse_request(**words, argv=context.obj), as_json, verbose, for_ci)


def carry_out(request: CampaignRequest, as_json: bool, verbose: bool = False, for_ci: ForCi = NOTHING) -> int:
    """Run, print and write; returns the exit code. The caller prints UsageError and HarnessError."""
    for_ci.check()
    with TimeLimit() as limit:
        with Progress() as shown:
            progress = limit.renewed_by(shown, REST_S)
            for each in (request, request.against):
                if each is not None:
                    limit.set(REST_S, f"preparing {each.target.sut}")
                    each.target.prepare(each, progress)
        with open_report(request.report, request.argv) as earlier:
            if earlier is not None:
                say(f"the earlier report in {request.report} was moved to {earlier}")
            if short := request.target.forecast(request if request.against is None else _its_share(request)):
                say(short)
            return _verify(request, as_json, verbose, for_ci, limit)


def _verify(request: CampaignRequest, as_json: bool, verbose: bool, for_ci: ForCi, limit: TimeLimit) -> int:
    began, comparison = time.monotonic(), None
    try:
        with Progress() as shown:
            if request.runs is None:
                progress: Callable[[str], None] = shown
                limit.set(request.budget_s + REST_S, f"a campaign with a budget of {request.budget_s:g} s")
            else:
                progress = limit.renewed_by(shown)
                progress("starting")
            if request.against is None:
                campaign = _run(request, progress)
            else:
                campaign = _run(_its_share(request), progress)
                if not campaign.interrupted and not campaign.trouble:
                    comparison = _compared(campaign, request, progress, began + request.budget_s)
    except (UsageError, HarnessError):
        raise
    except Exception as error:
        log = request.report / "logs" / "error.txt"
        raise HarnessError(store_traceback(error, log)) from error
    limit.set(REST_S, "the report")
    outcome = judge_campaign(
        campaign, request.profile, request.baseline, request.report, request.argv, request.guarantees
    )
    outcome = replace(outcome, against=comparison)
    lasts = request.runs is None and request.budget_s >= CONFIRM_FROM_S and not campaign.interrupted
    system = request.target.load() if lasts and outcome.failures else None
    if system is not None:
        with Progress() as shown:
            shown("measuring at which event the first failure became likely")
            outcome = with_leading_curve(outcome, system)
    trouble = ""
    try:
        if comparison is not None and request.against is not None:
            other = request.against
            judged = judge_campaign(comparison.second, other.profile, None, other.report, other.argv, other.guarantees)
            write_outcome(judged, other.report)  # From which its failures can be replayed.
        write_outcome(outcome, request.report)
        for_ci.write(outcome, request.report)
        store_baseline(outcome, request)
    except HarnessError as error:  # Failures that were found are still reported, for example when the disk is full.
        trouble = str(error)
    if as_json:
        print(json.dumps(outcome.to_dict(), indent=1))
    else:
        where = "" if trouble else f"report: {request.report / 'report.html'}"
        print_outcome(outcome, output_console(), where, verbose)
    if trouble:
        say(trouble)
        return EXIT_VIOLATED if outcome.verdict == "violated" else EXIT_HARNESS
    return outcome.exit_code()


def _its_share(request: CampaignRequest, runs: int | None = None) -> CampaignRequest:
    """The request for one of two campaigns. runs: how many the other one made, where they can be counted."""
    return replace(request, budget_s=request.budget_s * CAMPAIGN_SHARE, runs=request.runs or runs)


def _compared(
    campaign: Campaign, request: CampaignRequest, progress: Callable[[str], None], until: float
) -> Comparison:
    """The comparison: the same plans on the system of `--against`, then each one's small plans on the other."""
    from marker_sim.campaign.comparison import compare

    assert request.against is not None
    progress(f"the same plans on {request.against.target.sut}")
    runs = campaign.runs if request.target.can.plans else None
    second = run_campaign(_its_share(request.against, runs), progress)
    progress("the plans of each system on the other")
    return compare(campaign, second, request, until)


def store_traceback(error: Exception, log: Path) -> str:
    """Write the traceback of an unexpected exception to `log`; returns a sentence that names the file."""
    what = f"unexpected {type(error).__name__}: {error}".splitlines()[0]
    try:
        log.write_text("".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace")
    except OSError as failed:
        return f"{what}; its traceback could not be stored in {log} ({failed.strerror})"
    return f"{what}; this is a defect of the kit or of code loaded into it, the traceback is in {log}"


def _run(request: CampaignRequest, progress: Callable[[str], None]) -> Campaign:
    campaign = run_campaign(
        request, progress, blame=lambda error: store_traceback(error, request.report / "logs" / "error.txt")
    )
    # Results with real processes do not depend on the seed alone, so `--runs` has none.
    worth = request.runs is None and request.budget_s >= CONFIRM_FROM_S
    return _confirmed(campaign, request, progress) if worth else campaign


def _confirmed(campaign: Campaign, request: CampaignRequest, progress: Callable[[str], None]) -> Campaign:
    """The campaign after its shortest failure was run once with real processes, where that is possible."""
    if (settings := request.target.script_settings()) and not campaign.interrupted:
        return _played(campaign, request, settings, progress)
    number = next((n for n, failure in enumerate(campaign.failures) if failure.plan is not None), None)
    if number is None or campaign.interrupted or not request.target.can.plans:
        return campaign
    failure = campaign.failures[number]
    lasts_s = failure.history.events[-1].time_ns / 1e9
    if lasts_s > CONFIRM_SHARE * request.budget_s:
        said = f"{SIMULATED_ONLY} its run takes {lasts_s:.0f} s, which is too long for this budget"
    else:
        progress(f"running the plan of {failure.guarantee} with real processes")
        said = confirm(failure.own_plan, request.target.sut, failure.guarantee, request.profile)
    failures = (*campaign.failures[:number], replace(failure, confirmed=said), *campaign.failures[number + 1 :])
    return replace(campaign, failures=failures)


def _played(
    campaign: Campaign, request: CampaignRequest, settings: dict[str, str], progress: Callable[[str], None]
) -> Campaign:
    """The campaign after the script of each story was run once, while there is time. settings: its environment."""
    from marker_sim.campaign.stored_plan import StoredPlan

    failures, until = list(campaign.failures), time.monotonic() + SCRIPTS_S
    for failure, *_ in stories(failures):
        if failure.plan is None or time.monotonic() > until:
            continue
        progress(f"playing the plan of {failure.guarantee} by processes")
        target = request.target
        stored = StoredPlan(sut=target.sut, guarantee=failure.guarantee, plan=failure.plan, version=target.version)
        said = filter(None, (failure.confirmed, confirm_by_script(stored, settings)))
        failures[failures.index(failure)] = replace(failure, confirmed="; ".join(said))
    return replace(campaign, failures=tuple(failures))


def confirm_by_script(stored: StoredPlan, settings: dict[str, str]) -> str:
    """What the script of a failure shows in one try; settings: its environment beside this process's."""
    from marker_sim.report.scripts.table_script import script_of

    try:
        words = [sys.executable, "-I", "-S", "-c", script_of(stored)[0]]
        environment = os.environ | settings | {"TRIES": "1"}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SCRIPT_S, check=False)
    except UsageError as error:
        return f"{NOT_PLAYED}: {error}"
    except subprocess.TimeoutExpired:
        return f"{NOT_PLAYED} in {SCRIPT_S:g} s"
    failed = f"{NOT_PLAYED}: {(done.stdout or done.stderr).strip()[-ERROR_MAX:]}"
    return {1: BY_PROCESSES, 0: NOT_BY_PROCESSES}.get(done.returncode, failed)


def confirm(plan: Plan, sut: str, guarantee: str, profile: Profile, times: int = 1) -> str:
    """One of the three sentences above, with the number of runs or the reason; a missing requirement is no error."""
    why = _not_playable(plan, guarantee)
    if why:
        return f"{SIMULATED_ONLY} {why}"
    from marker_sim.campaign.replay import replayed  # Real processes: after a violation alone.
    from marker_sim.campaign.stored_plan import REAL, StoredPlan

    try:
        again = replayed(StoredPlan(sut=sut, guarantee=guarantee, plan=plan, world=REAL), sut, profile, times)
    except (HarnessError, UsageError) as error:
        return f"{SIMULATED_ONLY} real processes could not run the plan: {error}"
    runs = f"in {again.broken} of {times} run{'' if times == 1 else 's'}"
    return f"{CONFIRMED}, {runs}" if again.broken else f"{NOT_REPRODUCED}, {runs}; {HELD if again.held else UNDECIDED}"


def _not_playable(plan: Plan, guarantee: str) -> str:
    if plan.storage not in REAL_STORAGES:
        return f"real processes run on {' and '.join(REAL_STORAGES)} only, not on {plan.storage}"
    if guarantee == MODES_AGREE:
        return "its guarantee compares two runs"
    why = lacking(f"real processes on {plan.storage}")
    return f"real processes need {why}" if why else ""
