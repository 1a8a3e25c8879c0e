"""Commands and options of `marker-sim`; every error becomes one sentence and an exit code.

A command imports what it needs when it runs: a server that is killed and started again all the time must start quickly.

0 all hold   1 violated   2 wrong usage   3 inconclusive   4 the kit or its environment failed   130 interrupted
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.main import get_command

from marker_sim import __version__
from marker_sim.cli import options as given
from marker_sim.cli.output import settle_outputs
from marker_sim.errors import HarnessError, UsageError
from marker_sim.report.verdict import EXIT_HARNESS, EXIT_HOLDS, EXIT_INTERRUPTED, EXIT_USAGE
from marker_sim.targets.table import DEFAULT, NAMES

REPORT = "marker-sim-report"
CHAOS = "chaos"
TIMES_MAX = 1000


def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit(EXIT_HOLDS)


def _verify(
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
    against: given.Against = None,
    against_start: given.AgainstStart = None,
    report: given.Report = REPORT,
    start: given.Start = None,
    reader: given.Reader = None,
    dir_format: given.Form = None,
    identity: given.Identity = False,
    batch_threads: given.BatchThreads = None,
    s3_endpoint: given.S3Endpoint = None,
    s3_bucket: given.S3Bucket = None,
    s3_access_key: given.S3AccessKey = None,
    s3_secret_key: given.S3SecretKey = None,
    junit: given.Junit = None,
    as_json: given.Json = False,
) -> int:
    """Judge an implementation: runs, faults, verdict, report."""
    from marker_sim.cli.request import parse_request
    from marker_sim.cli.verify import verify

    output = ("junit", "as_json")
    words = {name: word for name, word in context.params.items() if name not in output}  # Every other option above.
    request = parse_request(**words, argv=context.obj)
    return verify(request, as_json, junit)


def _replay(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A plan, a report directory, a chaos directory.")],
    sut: given.OtherSut = None,
    keep: Annotated[bool, typer.Option("--keep", help="Do not move fixed failures of a chaos directory.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Replay every stored failure, not one per cause.")] = False,
    times: given.Times = None,
    real: given.Real = False,
    script: given.Script = False,
    markdown: given.Markdown = False,
    file: given.HandedOver = None,
) -> int:
    """Run stored failures again, one for each cause: FIXED, STILL VIOLATED, NOT REPRODUCED or CANNOT RUN.

    NO FAILURE KNOWN: the plan breaks no guarantee, and there is no record that it ever did.

    A cause is a guarantee and how it was broken. Its failures are run until one is still violated, in the world they
    were found in: milliseconds in the simulated one, seconds with real processes, whose output also has the number of
    violated runs. Fixed failures of a chaos directory are moved to failures/fixed.

    Exit codes: 1 something is still violated, 4 something cannot run, 3 something was not reproduced, 0 nothing of it.
    """
    from marker_sim.cli.replay import Wanted, replay
    from marker_sim.cli.request import parse_number
    from marker_sim.report.table import output_console

    if script or markdown:
        from marker_sim.cli.handing_over import hand_over

        given_too = [name for name, value in (("--script and --markdown", script and markdown), ("--keep", keep),
                     ("--times", times), ("--real", real)) if value]  # fmt: skip
        return hand_over(path, sut, script, every, file, given_too)
    if file is not None:
        raise UsageError(f"{file} was given as well; a second path is what --script or --markdown writes, so add one")
    count = None if times is None else parse_number(times, "--times", TIMES_MAX)
    wanted = Wanted(sut=sut, keep=keep, every=every, real=real, times=count)
    return replay(path, wanted, output_console())


def _shrink(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A report directory of verify, or a plan in one.")],
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time for all of it: 30s, 5m, 1h.")] = "5m",
) -> int:
    """Make stored failures smaller, one for each cause, on the system that showed them.

    A smaller plan takes the place of the earlier one, which is kept in earlier/ of the report. Exit codes as those of
    replay: 1 it is still violated, smaller or not, 4 it cannot run, 3 it was not reproduced, 0 it is fixed.
    """
    from marker_sim.cli.replay import shrink_stored
    from marker_sim.cli.request import parse_duration
    from marker_sim.report.table import output_console

    return shrink_stored(path, parse_duration(budget, "--budget"), output_console())


def _chaos(
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time of the whole run: 8h, 20m, 30s.")] = "8h",
    directory: Annotated[
        str, typer.Option("--dir", metavar="DIR", help="Directory for ledger, failures and summary.")
    ] = CHAOS,
    sut: Annotated[str | None, typer.Option(metavar="SUT", help=f"{', '.join(NAMES)}.")] = None,
    storage: given.ChaosStorage = None,
    start: given.Start = None,
    reader: given.Reader = None,
    dir_format: given.Form = None,
    identity: given.Identity = False,
    batch_threads: given.BatchThreads = None,
    s3_endpoint: given.S3Endpoint = None,
    s3_bucket: given.S3Bucket = None,
    seed: Annotated[str | None, typer.Option(metavar="N", help="Seed of a new directory.")] = None,
    jobs: Annotated[str | None, typer.Option(metavar="N", help="Worker processes. Default: one per core.")] = None,
    stages: given.Stages = None,
    spark_master: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Run plans on executors: local[N], local-cluster[N,C,MB], spark://HOST:PORT."),
    ] = None,
    new_night: Annotated[
        bool, typer.Option("--new-night", help="Start a new night; do not continue an unfinished one.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the content of summary.json.")] = False,
) -> int:
    """Search for a night in every world that is installed; resumes where it was stopped."""
    from marker_sim.cli.chaos import chaos

    return chaos(
        budget=budget,
        directory=directory,
        sut=sut,
        storage=storage,
        start=start,
        reader=reader,
        dir_format=dir_format,
        identity=identity,
        batch_threads=batch_threads,
        s3_endpoint=s3_endpoint,
        s3_bucket=s3_bucket,
        seed=seed,
        jobs=jobs,
        stages=stages,
        spark_master=spark_master,
        new_night=new_night,
        as_json=as_json,
    )


def _judge(
    context: typer.Context,
    history: given.JudgedHistory,
    guarantees: given.Guarantees = None,
    profile: given.Promises = None,
    expect: given.Expect = None,
    as_json: given.Json = False,
    sets: given.Sets = False,
    spark_master: given.SetsOnSpark = None,
) -> int:
    """Judge a stored history again, or facts of millions of markers as sets."""
    from marker_sim.cli.judging import rejudge

    return rejudge(
        history, guarantees=guarantees, profile=profile, expect=expect, as_json=as_json, argv=context.obj,
        sets=sets, spark_master=spark_master,
    )  # fmt: skip


def _doctor(
    install: Annotated[
        bool, typer.Option("--install", help="Build and download what the installed extras can use.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> int:
    """List what is installed, what is missing and how to get it."""
    from marker_sim.cli.doctor import doctor
    from marker_sim.report.table import output_console

    return doctor(install=install, as_json=as_json, console=output_console())


def _mutants(
    context: typer.Context,
    seeds: Annotated[str, typer.Option(metavar="N", help="Number of seeds for the swarm.")] = "20",
    budget_per_mutant: Annotated[
        str | None, typer.Option(metavar="TIME", help="Processor time per mutant. Default: 60s.")
    ] = None,
    runs: Annotated[str | None, typer.Option(metavar="N", help="Plans per search, instead of a time.")] = None,
    only: Annotated[str | None, typer.Option(metavar="NAME,...", help="Only these mutants.")] = None,
    jobs: given.Jobs = None,
    stop_at_first: Annotated[bool, typer.Option("--stop-at-first", help="Stop at the first survivor.")] = False,
    report: given.Report = "marker-sim-mutants",
    as_json: Annotated[bool, typer.Option("--json", help="Print only the content of mutants.json.")] = False,
) -> int:
    """Plant known defects in the reference, and measure which guarantee detects each, and how soon."""
    from marker_sim.cli.mutants import mutants

    return mutants(
        seeds=seeds,
        budget_per_mutant=budget_per_mutant,
        runs=runs,
        only=only,
        jobs=jobs,
        stop_at_first=stop_at_first,
        report=report,
        as_json=as_json,
        argv=context.obj,
    )


def _serve(
    base: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH_OR_URI", help="A table or a directory of tables: /dir, file:/dir, s3://bucket/k."),
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="0 for any free port.")] = 0,
    batch_threads: Annotated[str, typer.Option(metavar="N", help="Marker files of a directory.")] = "20",
    batch_interval_ms: Annotated[str, typer.Option(metavar="MS", help="Time between batches.")] = "50",
    s3_endpoint: Annotated[
        str | None, typer.Option(metavar="URL", help="Endpoint of an object store other than AWS.")
    ] = None,
    waiting_max: Annotated[int, typer.Option(metavar="N", help="Requests that may wait; others get 503.")] = 10_000,
) -> int:
    """Serve markers over HTTP as Hudi's timeline server does."""
    from marker_sim.cli.serve import serve

    return serve(
        bases=base or [],
        host=host,
        port=port,
        batch_threads=batch_threads,
        batch_interval_ms=batch_interval_ms,
        s3_endpoint=s3_endpoint,
        waiting_max=waiting_max,
    )


def _audit(
    context: typer.Context,
    table: given.Table,
    report: given.AuditReport = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the content of audit.json.")] = False,
    s3_endpoint: given.AuditEndpoint = None,
    jobs: given.AuditJobs = None,
    stuck_after: given.StuckAfter = "2h",
    spark_master: given.SparkMaster = None,
) -> int:
    """Find damage by defects of markers, rollbacks and commits in an existing Hudi table, by reading it.

    Exit codes: 1 damage found, 4 the kit or the storage failed, 3 something could not be decided, 0 clean.
    """
    from marker_sim.cli.audit import audit

    return audit(
        table,
        report=report,
        json_only=as_json,
        s3_endpoint=s3_endpoint,
        jobs=jobs,
        stuck_after=stuck_after,
        spark_master=spark_master,
        argv=context.obj,
    )


COMMANDS: dict[str, Callable[..., int]] = {
    "verify": _verify,
    "replay": _replay,
    "shrink": _shrink,
    "judge": _judge,
    "mutants": _mutants,
    "serve": _serve,
    "doctor": _doctor,
    "chaos": _chaos,
    "audit": _audit,
}


def build_app() -> typer.Typer:
    """The commands; the `obj` of the context holds the words of the command line, which reports quote."""
    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        help="Decides, with evidence, whether an implementation of Apache Hudi markers is correct.",
    )
    app.callback(invoke_without_command=True)(_top)
    for name, command in COMMANDS.items():
        app.command(name=name)(command)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; raises nothing."""
    words = tuple(sys.argv[1:] if argv is None else argv)
    settle_outputs()
    _end_on_sigterm()
    try:
        command = get_command(build_app())
        result: Any = command(args=list(words), prog_name="marker-sim", standalone_mode=False, obj=words)
        return result if isinstance(result, int) else EXIT_HOLDS
    except UsageError as error:
        return _say(str(error), EXIT_USAGE)
    except HarnessError as error:
        return _say(str(error), EXIT_HARNESS)
    except SystemExit as error:
        return _say(f"ended early with {error.code!r}: code loaded into the kit called exit", EXIT_HARNESS)
    except KeyboardInterrupt:
        return _say("interrupted before any result", EXIT_INTERRUPTED)
    except Exception as error:
        spoken = getattr(error, "format_message", None)  # Typer's own errors; their class moves between its versions.
        if spoken is not None:
            return _say_usage(str(spoken()), words)
        from marker_sim.cli.verify import store_traceback

        with tempfile.NamedTemporaryFile(prefix="marker-sim-error-", suffix=".txt", delete=False) as log:
            return _say(store_traceback(error, Path(log.name)), EXIT_HARNESS)


def _end_on_sigterm() -> None:
    """SIGTERM and a closed terminal end a run like Ctrl-C, so that no process the kit started outlives it."""
    if threading.current_thread() is not threading.main_thread():
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # Not with nohup.
        signal.signal(signal.SIGHUP, interrupt)


def _say_usage(message: str, words: tuple[str, ...]) -> int:
    if not words:  # Then Typer's message is the whole help.
        print(message, file=sys.stderr)
        return EXIT_USAGE
    command = f"marker-sim {words[0]}" if words[0] in COMMANDS else "marker-sim"
    sentence = " ".join(message.split()).rstrip(".")
    return _say(f"{sentence}; `{command} --help` lists what is accepted", EXIT_USAGE)


def _say(sentence: str, code: int) -> int:
    print(f"marker-sim: {sentence}", file=sys.stderr)
    return code
