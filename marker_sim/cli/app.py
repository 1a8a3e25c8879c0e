"""Commands of `marker-sim`; every error becomes one sentence and an exit code.

Only the module of the command that is given is imported: a server that is killed and started again all the time must
start quickly.

0 all hold   1 violated   2 wrong usage   3 inconclusive   4 the kit or its environment failed   130 interrupted
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from typer.main import get_command

from marker_sim import __version__
from marker_sim.cli.help import SETTINGS, PagedCommand, PagedGroup
from marker_sim.cli.output import say, settle_outputs
from marker_sim.errors import EXIT_HARNESS, EXIT_HOLDS, EXIT_INTERRUPTED, EXIT_USAGE, HarnessError, UsageError

# Each is a function of its name, the options of which are its parameters, in a module of its name or of this one.
COMMANDS = ("verify", "replay", "shrink", "judge", "mutants", "serve", "doctor", "chaos", "audit")
MODULES = {"shrink": "replay"}


def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit(EXIT_HOLDS)


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """These commands; the `obj` of the context holds the words of the command line, which reports quote."""
    app = typer.Typer(
        add_completion=False,
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
    _end_on_sigterm()
    try:
        asked = [word for word in words[:1] if word in COMMANDS]
        command = get_command(build_app(asked if asked or words == ("--version",) else COMMANDS))
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
    say(sentence)
    return code
