"""Commands of `marker-sim`; every error becomes one sentence and an exit code.

Only the module of the command that is given is imported: a server that is killed and started again all the time must
start quickly. Help has no boxes, so that a pipe and a terminal of any width and encoding show the same words; it names
documents by their path in the source, for there is no public address yet.

0 all hold   1 violated   2 wrong usage   3 inconclusive   4 the kit or its environment failed   130 interrupted
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from marker_sim import __version__
from marker_sim.cli.output import say, settle_outputs
from marker_sim.errors import EXIT_HARNESS, EXIT_HOLDS, EXIT_INTERRUPTED, EXIT_USAGE, HarnessError, UsageError

# Each is a function of its name, the options of which are its parameters, in a module of its name or of this one.
COMMANDS = ("verify", "replay", "shrink", "judge", "mutants", "serve", "doctor", "chaos", "audit")
MODULES = {"shrink": "replay"}
SETTINGS = {"max_content_width": 120, "help_option_names": ["--help", "-h"]}
_EXITS = {
    0: "every promised guarantee holds",
    1: "one is violated, and not known to the baseline of --expect",
    2: "wrong usage",
    3: "one is inconclusive",
    4: "the kit or its environment failed",
    130: "interrupted; the report holds the results so far",
}
_AGAIN = {
    0: "none of these",
    1: "something is still violated",
    2: "wrong usage",
    3: "something was not reproduced, or all was left out",
    4: "something cannot run",
}
_SERVER = "start reader dir-format identity batch-threads"
_INTERRUPTED = (
    b"marker-sim: interrupted; what was found is kept, which may take some seconds; a second time ends it at once\n"
)
_S3 = "s3-endpoint s3-bucket s3-access-key s3-secret-key"

# What ends a command, and what happens by then where nobody decided otherwise.
_USUAL = ((signal.SIGTERM, None), (signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the help of a command has besides its options.

    groups: by heading, the names of options in their order, with spaces between them.
    examples: a command line and what it does. exits: what an exit code means, "" for one that it never has.
    """

    groups: Mapping[str, str]
    examples: tuple[tuple[str, str], tuple[str, str]]
    exits: Mapping[int, str]
    more: str


# fmt: off
PAGES = {
    "verify": Page(
        groups={"What is judged": f"sut {_SERVER} writers orders services",
                "Search": "mode storage budget runs seed jobs stop-at-first",
                "What counts": "guarantees profile expect write-baseline",
                "Comparison with a second system": "against against-start",
                "An object store of your own": _S3, "Results": "report junit sarif github json verbose"},
        examples=(("marker-sim verify --sut my_package.markers:factory --budget 20s", "a Python class of yours"),
                  ("marker-sim verify --sut http --start './server {port} {storage}'", "a server of yours")),
        exits=_EXITS, more="README.md; docs/third-party.md for a class, docs/foreign-servers.md for a server",
    ),
    "replay": Page(
        groups={"What is run": "sut all times real keep", "Instead of a run": "curve script markdown"},
        examples=(("marker-sim replay marker-sim-report", "is it fixed?"),
                  ("marker-sim replay marker-sim-report --script show.py", "of a server: a script without marker-sim")),
        exits=_AGAIN, more="docs/handing-over.md",
    ),
    "shrink": Page(
        groups={"Search": "budget same-cause"},
        examples=(("marker-sim shrink marker-sim-report", "every cause of a report, for 5 minutes"),
                  ("marker-sim shrink marker-sim-report/plan.json --budget 30m", "one plan, for half an hour")),
        exits=_AGAIN | {0: "all of it is fixed", 1: "something is still violated, by a smaller plan or the same",
                        130: "interrupted; what was found is kept"},
        more="docs/handing-over.md",
    ),
    "judge": Page(
        groups={"What counts": "guarantees profile expect", "Results": "json verbose"},
        examples=(("marker-sim judge marker-sim-report -v", "the history of a report, with all verdicts"),
                  ("marker-sim judge history.parquet --guarantees G1", "one guarantee, of a history alone")),
        exits={code: said for code, said in _EXITS.items() if code != 130}, more="docs/history.md",
    ),
    "mutants": Page(
        groups={"Search": "only seeds budget-per-mutant runs jobs stop-at-first", "Results": "report json"},
        examples=(("marker-sim mutants", "every mutant, by all guarantees"),
                  ("marker-sim mutants --only first-infix --seeds 3", "one mutant, with 3 seeds")),
        exits=_EXITS | {0: "each mutant was detected", 1: "one survived; it is named", 3: ""}, more="docs/mutants.md",
    ),
    "serve": Page(
        groups={"What is served": "base s3-endpoint", "Address": "host port",
                "Batches and answers": "batch-threads batch-interval-ms waiting-max fsync"},
        examples=(("marker-sim serve --base /data/tables --port 26754", "tables below a directory"),
                  ("marker-sim serve --base s3a://lake --s3-endpoint http://127.0.0.1:9000", "tables in a bucket")),
        exits={0: "ended by SIGTERM or SIGINT", 2: "wrong usage", 4: "the server could not run"},
        more="docs/protocol.md",
    ),
    "doctor": Page(
        groups={},
        examples=(("marker-sim doctor", "look; nothing is changed and nothing downloaded"),
                  ("marker-sim doctor --install", "fetch what the installed extras can use, into a cache of the kit")),
        exits={0: "`marker-sim verify` can run here", 2: "wrong usage", 4: "it cannot, or an installation failed"},
        more="docs/troubleshooting.md",
    ),
    "chaos": Page(
        groups={"What is judged": f"sut {_SERVER}", "Search": "storage budget stages seed jobs spark-master",
                "What counts": "profile",
                "Directory and results": "dir new-night json", "An object store of your own": "s3-endpoint s3-bucket"},
        examples=(("marker-sim chaos --budget 8h", "every world that is installed; the same command continues it"),
                  ("marker-sim chaos --sut hudi:1.0.2 --storage s3 --budget 2h", "one system")),
        exits=_EXITS | {1: "something promised is violated"}, more="docs/nightly.md",
    ),
    "audit": Page(
        groups={"What is read": "s3-endpoint jobs spark-master", "What counts": "stuck-after",
                "Results": "report json"},
        examples=(("marker-sim audit /data/table --report audit", "a local table, with a page of what was found"),
                  ("marker-sim audit s3a://lake/table --jobs 64", "a table in a bucket")),
        exits={0: "clean", 1: "damage found", 2: "wrong usage", 3: "something could not be decided",
               4: "the kit or the storage failed"},
        more="docs/audit.md",
    ),
}
TOP = Page(
    groups={"Judge a system": "verify chaos mutants", "Work with stored results": "replay shrink judge",
            "Tables and servers": "audit serve", "This machine": "doctor"},
    examples=(("marker-sim verify", "judge the reference for 40 s"),
              ("marker-sim verify --help", "which systems can be judged instead")),
    exits=_EXITS, more="README.md",
)
# fmt: on


class PagedCommand(TyperCommand):
    """A command whose help has groups, examples, exit codes and a document, and which takes each option once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, and before them for `verify` those of pyproject.toml; UsageError for an option twice."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        given = [_name_of(each) for each in order if each.param_type_name == "option"]
        if twice := next((name for name in given if given.count(name) > 1), None):
            raise UsageError(f"--{twice} was given twice; write it once")
        if self.name == "verify" and "help" not in given:
            from marker_sim.cli.request import settings_words

            options: list[Any] = [each for each in self.params if each.param_type_name == "option"]
            of_file = settings_words({_name_of(each): each.is_flag for each in options}, given)
            ctx.obj = (*ctx.obj[:1], *of_file, *ctx.obj[1:])
            args = [*of_file, *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options by group; those of no group last."""
        records = {_name_of(each): (each, each.get_help_record(ctx)) for each in self.get_params(ctx)}
        _write_rows(
            formatter, "Arguments", [row for each, row in records.values() if each.param_type_name == "argument"]
        )
        options = {name: row for name, (each, row) in records.items() if each.param_type_name == "option" and row}
        for heading, names in PAGES[str(self.name)].groups.items():
            _write_rows(formatter, heading, [options.pop(name) for name in names.split() if name in options])
        _write_rows(formatter, "Other options", list(options.values()))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write what follows the options."""
        _write_end(formatter, PAGES[str(self.name)])


class PagedGroup(TyperGroup):
    """All commands, each with the whole first sentence of its help, in groups."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by group."""
        for heading, names in TOP.groups.items():
            found = [(name, self.commands[name]) for name in names.split() if name in self.commands]
            _write_rows(formatter, heading, [(name, _first_sentence(each.help or "")) for name, each in found])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write what follows the commands."""
        _write_end(formatter, TOP)


def _name_of(option: Any) -> str:
    return str(max(option.opts, key=len)).removeprefix("--")


def _first_sentence(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def _write_rows(formatter: Any, heading: str, rows: list[Any]) -> None:
    if rows:
        with formatter.section(heading):
            formatter.write_dl(rows)


def _write_end(formatter: Any, page: Page) -> None:
    with formatter.section("Examples"):
        for command, said in page.examples:  # On lines of their own, so that a command is copied in one piece.
            formatter.write(f"{'':{formatter.current_indent}}{command}\n")
            formatter.write(f"{'':{formatter.current_indent}}    {said}\n")
    _write_rows(formatter, "Exit codes", [(str(code), said) for code, said in page.exits.items() if said])
    formatter.write_paragraph()
    formatter.write_text(f"More: {page.more}")


def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit(EXIT_HOLDS)


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """These commands; the `obj` of the context holds the words of the command line, which reports quote."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        cls=PagedGroup,
        context_settings=SETTINGS,
        help="Decides, with evidence, whether an implementation of Apache Hudi markers is correct.",
    )
    app.callback(invoke_without_command=True)(_top)
    for name in names:
        command = getattr(import_module(f"marker_sim.cli.{MODULES.get(name, name)}"), name)
        app.command(name=name, cls=PagedCommand, context_settings=SETTINGS)(command)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; raises nothing."""
    words = tuple(sys.argv[1:] if argv is None else argv)
    settle_outputs()
    with _ended_by_signals():
        return _run(words)


def _run(words: tuple[str, ...]) -> int:
    asked = [word for word in words[:1] if word in COMMANDS]
    try:
        command = get_command(build_app(asked if asked or words == ("--version",) else COMMANDS))
        result: Any = command(args=list(words), prog_name="marker-sim", standalone_mode=False, obj=words)
        return result if isinstance(result, int) else EXIT_HOLDS
    except UsageError as error:
        return _say(str(error), EXIT_USAGE)
    except HarnessError as error:
        return _say(str(error), EXIT_HARNESS)
    except SystemExit as error:
        if not asked:  # The end of Typer's completion, which no code of others can reach.
            return int(error.code or EXIT_HOLDS)
        return _say(f"ended early with {error.code!r}: code loaded into the kit called exit", EXIT_HARNESS)
    except KeyboardInterrupt:
        return _say("interrupted before any result", EXIT_INTERRUPTED)
    except Exception as error:
        spoken = getattr(error, "format_message", None)  # Typer's own errors; their class moves between its versions.
        if spoken is not None:
            return _say_usage(str(spoken()), words)
        if isinstance(error, OSError) and (given := str(error.filename)).startswith(tuple(filter(None, words[1:]))):
            return _say(f"{given} cannot be used: {error.strerror}; give another path", EXIT_USAGE)
        from marker_sim.cli.verify import store_traceback

        with tempfile.NamedTemporaryFile(prefix="marker-sim-error-", suffix=".txt", delete=False) as log:
            return _say(store_traceback(error, Path(log.name)), EXIT_HARNESS)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and a closed terminal end a run like Ctrl-C, so that no process the kit started outlives it.

    Ctrl-C says what goes on, since judging and writing what was found takes a while; a second one ends all at once.
    """
    count = 0

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        os.write(2, b"marker-sim: ended at once\n" if count > 1 else _INTERRUPTED)
        if count > 1:
            os._exit(EXIT_INTERRUPTED)
        raise KeyboardInterrupt

    before: dict[int, Any] = {}
    for number, usual in _USUAL if threading.current_thread() is threading.main_thread() else ():
        if usual in (None, signal.getsignal(number)):  # Not with nohup, or in the background.
            before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _say_usage(message: str, words: tuple[str, ...]) -> int:
    if not words:  # Then Typer's message is the whole help.
        print(message, file=sys.stderr)
        return EXIT_USAGE
    command = f"marker-sim {words[0]}" if words[0] in COMMANDS else "marker-sim"
    sentence = " ".join(message.split()).rstrip(".")
    return _say(f"{sentence}; `{command} --help` lists what is accepted", EXIT_USAGE)


def _say(sentence: str, code: int) -> int:
    say(sentence)
    return code
