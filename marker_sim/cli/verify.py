"""A `verify` request carried out: report directory, runs, verdict, files, exit code."""

from __future__ import annotations

import json
import traceback
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from marker_sim.campaign.coverage.tampered_history import let_go
from marker_sim.campaign.engine import run_simulated
from marker_sim.campaign.result import Campaign
from marker_sim.campaign.statistics import Statistics
from marker_sim.cli.confirming import confirm
from marker_sim.cli.progress import Progress
from marker_sim.cli.ready import check_ready, short_budget
from marker_sim.cli.request import VerifyRequest
from marker_sim.errors import HarnessError, UsageError
from marker_sim.judges.baselines.baseline import counts_against
from marker_sim.report.directory import open_report
from marker_sim.report.table import output_console, print_outcome
from marker_sim.report.verdict import EXIT_HARNESS, EXIT_VIOLATED, judge_campaign
from marker_sim.report.write import write_outcome

# A run with real processes takes seconds, which a search of a few has not got.
CONFIRM_FROM_S = 30.0


def verify(request: VerifyRequest, as_json: bool) -> int:
    """Run, print and write; the exit code of the contract. UsageError and HarnessError are the caller's to print."""
    with Progress() as progress:
        check_ready(request, progress)
    with open_report(request.report, request.argv) as earlier:
        if earlier is not None:
            _say(f"the earlier report in {request.report} was moved to {earlier}")
        if short := short_budget(request):
            _say(short)
        return _verify(request, as_json)


def _verify(request: VerifyRequest, as_json: bool) -> int:
    try:
        with Progress() as progress:
            campaign = _run(request, progress)
    except (UsageError, HarnessError):
        raise
    except Exception as error:
        log = request.report / "logs" / "error.txt"
        raise HarnessError(store_traceback(error, log)) from error
    outcome = judge_campaign(
        campaign, request.profile, request.baseline, request.report, request.argv, request.guarantees
    )
    trouble = ""
    try:
        write_outcome(outcome, request.report)
    except HarnessError as error:  # What was found is found, also when the disk is full by now.
        trouble = str(error)
    if as_json:
        print(json.dumps(outcome.to_dict(), indent=1))
    else:
        print_outcome(outcome, output_console(), "" if trouble else f"report: {request.report / 'report.html'}")
    if trouble:
        _say(trouble)
        return EXIT_VIOLATED if outcome.verdict == "violated" else EXIT_HARNESS
    return outcome.exit_code()


def _say(sentence: str) -> None:
    Console(stderr=True).print(f"marker-sim: {sentence}", markup=False, highlight=False, soft_wrap=True)


def store_traceback(error: Exception, log: Path) -> str:
    """Write where an unexpected exception came from to `log`; the sentence that says so."""
    what = f"unexpected {type(error).__name__}: {error}".splitlines()[0]
    try:
        log.write_text("".join(traceback.format_exception(error)), encoding="utf-8", errors="backslashreplace")
    except OSError as failed:
        return f"{what}; its traceback could not be stored in {log} ({failed.strerror})"
    return f"{what}; this is a defect of the kit or of code loaded into it, the traceback is in {log}"


def _run(request: VerifyRequest, progress: Progress) -> Campaign:
    if request.kind == "python":
        campaign = run_simulated(
            sut=request.sut,
            modes=request.modes,
            storages=request.storages,
            budget_s=request.budget_s,
            runs_max=request.runs,
            jobs=request.jobs,
            stop_at_first=request.stop_at_first,
            baseline=request.baseline,
            blame=lambda error: store_traceback(error, request.report / "logs" / "error.txt"),
            seed=request.seed,
            guarantees=request.guarantees,
            profile=request.profile,
            progress=progress,
        )
        # What real processes come to is no function of a seed, which a number of runs is to be.
        worth = request.runs is None and request.budget_s >= CONFIRM_FROM_S
        return _confirmed(campaign, request, progress) if worth else campaign
    campaign = _run_foreign(request, progress)
    return replace(campaign, canary=let_go(campaign.last))


def _confirmed(campaign: Campaign, request: VerifyRequest, progress: Progress) -> Campaign:
    """The campaign with its shortest failure played once with real processes, where it can be."""
    number = next((n for n, failure in enumerate(campaign.failures) if failure.plan is not None), None)
    if number is None or campaign.interrupted:
        return campaign
    failure = campaign.failures[number]
    assert failure.plan is not None
    progress(f"running the plan of {failure.guarantee} with real processes")
    said = confirm(failure.plan, request.sut, failure.guarantee, request.profile)
    failures = (*campaign.failures[:number], replace(failure, confirmed=said), *campaign.failures[number + 1 :])
    return replace(campaign, failures=failures)


def _run_foreign(request: VerifyRequest, progress: Progress) -> Campaign:
    """Imported here, so that judging Python needs none of the extras."""

    def stop(statistics: Statistics) -> bool:
        rows = statistics.rows(request.profile) if request.stop_at_first else ()
        return counts_against(rows, request.baseline, request.profile)

    if request.kind == "http":
        from marker_sim.targets.http import run_http

        return run_http(
            request.start,
            storage=request.storages[0],
            budget_s=request.budget_s,
            seed=request.seed,
            report_dir=request.report,
            dir_format=request.dir_format,
            reader=request.reader,
            endpoint=request.endpoint,
            identity=request.identity,
            batch_threads=request.batch_threads,
            progress=progress,
            profile=request.profile,
            stop=stop,
            sut_name=request.sut,
            sut_version="",
        )
    if request.kind == "hudi-spark":
        from marker_sim.targets.hudi_spark import run_hudi_spark

        return run_hudi_spark(
            request.detail,
            modes=request.modes,
            storage=request.storages[0],
            budget_s=request.budget_s,
            seed=request.seed,
            report_dir=request.report,
            progress=progress,
            profile=request.profile,
            stop=stop,
        )
    from marker_sim.targets.hudi import run_hudi

    return run_hudi(
        request.detail,
        storage=request.storages[0],
        budget_s=request.budget_s,
        seed=request.seed,
        report_dir=request.report,
        dir_format=request.dir_format,
        reader=request.reader,
        endpoint=request.endpoint,
        progress=progress,
        profile=request.profile,
        stop=stop,
    )
