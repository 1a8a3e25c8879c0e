"""A stored plan as a shell script that shows the violation without the kit: bash with curl, kill and cat.

The script starts the server, makes the requests of the plan, does its faults, looks at what is stored, and decides by
itself (`script.awk`): 1 violated, 0 held, 3 when a step could not be done. Where a fault is due at a call of the server
on local files, the server is started through `servers_door.py.j2`, at which its calls stop. Plans that a script cannot
run, mostly with a fault at a request to S3, are refused in a sentence.
"""

from __future__ import annotations

import json
import re
import shlex
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.faults import FaultKind
from marker_sim.judges.findings import by_number
from marker_sim.judges.guarantees import BY_ID
from marker_sim.plan import COPY, Op, Plan
from marker_sim.report.scripts.shell_steps import faults_at_calls, not_in_a_shell, quoted, steps_of
from marker_sim.report.templates import resource
from marker_sim.report.words import plan_sentences, printable
from marker_sim.targets.hudi import NAME as HUDI
from marker_sim.targets.hudi import SETTINGS, launcher_of, service_command
from marker_sim.targets.target import ServerOptions

BOUND_S = 15
CLIENTS_S = 8
TRIES, ENOUGH = 10, 3  # For a plan that depends on timing: number of tries, and of required violations.
WAITING = frozenset(("G6", "G7"))  # A try that shows one of them takes long.
LOST = frozenset(("G1", "G2", "G3", "G4", "G11"))  # A lost name breaks one of them, depending on when it is noticed.
JUDGED = tuple(f"G{number}" for number in range(1, 13))
_NO_NAME = "\0\1\2"  # The log has 1 for a line break and 2 for a tab.
_CLOSED = "Unlike the plan, this script closes connections where the plan resets them; a shell cannot reset one."
_DOOR = "Calls of the server on its files stop at a seccomp listener in Python 3, which Linux has since 5.19."
_FRONT = "The server reaches S3 through a program in Python 3, which refuses the requests that are named above."
_SCRIPTS = Environment(
    loader=PackageLoader(__package__, ""),
    undefined=StrictUndefined,
    line_statement_prefix="%%",
    keep_trailing_newline=True,
    variable_start_string="@{",
    variable_end_string="}@",
    comment_start_string="@#",
    comment_end_string="#@",
    block_start_string="@%",
    block_end_string="%@",
)
_HOW = (
    "It needs bash 5, curl and awk on Linux, listens on 127.0.0.1, works in a new directory (KEEP=1 keeps it) and ends",
    "what it started. Exit codes: 1 violated, 0 held, 3 a step could not be done.",
)


def versions_of(failure: StoredPlan) -> str:
    """The versions of the system and of the kit."""
    system = (
        failure.sut if failure.version in ("", failure.sut.partition(":")[2]) else f"{failure.sut} {failure.version}"
    )
    return system + (f", found by marker-sim {failure.kit_version}" if failure.kit_version else "")


def head_of(failure: StoredPlan) -> tuple[str, ...]:
    """The first lines of every script: the guarantee, the source of the promise, the versions and the plan."""
    return (
        f"{failure.title} is broken" + (f": {failure.message}" if failure.message else ""),
        "",
        f"Promised:  {BY_ID[failure.guarantee or ''].sentence}",
        f"Written:   {failure.source or 'nowhere that is known'}",
        f"Seen with: {versions_of(failure)}" + (f"; {failure.often}" if failure.often else ""),
        "",
        *plan_sentences(failure.own_plan),
    )


def shell_script(failure: StoredPlan) -> str:
    """The script; UsageError says which part of the plan a shell cannot do."""
    plan, server = failure.own_plan, failure.server or ServerOptions()
    problem = _problem(failure)
    if problem:
        raise UsageError(f"{failure.title} cannot be shown by a script: {problem}")
    steps = steps_of(plan, server.identity)
    claims = set(JUDGED) & {failure.guarantee, *failure.also}
    claims |= LOST if claims & LOST else set()
    hudi, s3 = failure.sut.partition(":")[0] == HUDI, plan.storage == "s3"
    faults_ms = sum(fault.settings.for_ms + max(0, fault.settings.restart_ms) for fault in plan.faults)
    at_calls = faults_at_calls(plan)
    template = "servers_front.py.j2" if s3 else "servers_door.py.j2"
    program = render_script(template, door=door_program()).rstrip("\n")
    at_answers = bool(claims & {"G1", "G2"}) and not server.reader
    return render_script(
        "script.sh.j2",
        head=[printable(line) for line in _head(failure, hudi, s3)],
        guarantee=failure.guarantee,
        title=failure.title,
        tries=1 if steps.alone else TRIES,
        enough=1 if claims <= WAITING else ENOUGH,
        threads=plan.num_threads,
        interval_ms=plan.interval_ms,
        bound_ms=BOUND_S * 1000,
        wait_s=BOUND_S + 2 + faults_ms // 1000,
        places=" ".join(map(quoted, plan.directories)),
        hudi=_prepared(failure.version, s3) if hudi else "",
        start="" if hudi else quoted(_plain(server.start)),
        reader=quoted(server.reader) if server.reader else "",
        s3=s3,
        scheme=server.dir_format or "s3a",
        form="file:" if server.dir_format == "file" else "",
        due="".join(f"\n{line}" for line in steps.due),
        at_request=any(line.startswith("request ") for line in steps.due),
        steps=steps.text,
        uses=steps.uses,
        at_answers=at_answers,
        stops=at_answers or "pause_server" in steps.uses,
        clients_s=CLIENTS_S,
        door=0 if s3 else len(at_calls),
        front=len(at_calls) if s3 else 0,
        door_faults=quoted(json.dumps(at_calls)),
        door_program=program,
        known="\n".join(f"    create {place} {quoted(name)}" for place, name in _known(plan)) or "    :",
        claims=" ".join(by_number(claims)),
        rules=resource("script.awk", __package__).rstrip("\n"),
    )


def door_program() -> str:
    """The part of a script in Python at which calls of a program stop."""
    return resource("door.py.j2", __package__).rstrip("\n")


def render_script(template: str, **content: Any) -> str:
    """A script from its template. Nothing is escaped: shell words are quoted one by one."""
    return _SCRIPTS.get_template(template).render(**content)


def _problem(failure: StoredPlan) -> str:
    """The reason why a shell cannot do the plan, "" when it can."""
    plan = failure.own_plan
    if failure.guarantee not in JUDGED:
        return f"it judges {JUDGED[0]} to {JUDGED[-1]}, what clients and the storage of a timeline server see"
    if plan.mode != "timeline" or plan.writes or plan.storage not in ("local", "s3"):
        return "it needs more than requests to a timeline server on a directory or on S3"
    for fault in plan.faults:
        why = not_in_a_shell(fault, plan)
        if why:
            return f"{why} ({fault.kind.value} of {fault.target or 'any process'})"
    if any(set(op.name) & set(_NO_NAME) for op in plan.ops):
        return "a name has one of the bytes 0, 1 and 2, which no word of a shell or no line of its log can have"
    return ""


def _head(failure: StoredPlan, hudi: bool, s3: bool) -> list[str]:
    """The comment at the beginning of the script."""
    settings = [
        "Set BUNDLE to the Hudi bundle jar (hudi-spark3.5-bundle_2.12-VERSION.jar), JARS to the class path of Spark's"
        " own jars (for example '.../pyspark/jars/*'); java, 17 or later, is taken from PATH."
        if hudi
        else "Set START to the command of another server; {port}, {storage}, {workdir}, {threads} and {interval_ms} are"
        " filled in."
    ]
    if s3:
        more = ", and S3A to the class path of hadoop-aws and aws-java-sdk-bundle" if hudi else ""
        settings.append(
            "It was found on S3: set ENDPOINT to one, BUCKET to an empty bucket of it, AWS_ACCESS_KEY_ID and"
            f" AWS_SECRET_ACCESS_KEY{more}. Without ENDPOINT a local directory is the storage."
        )
    return [
        *head_of(failure),
        *([_CLOSED] if any(fault.kind is FaultKind.RESET for fault in failure.own_plan.faults) else []),
        "",
        *settings,
        f"TRIES is how often the steps are tried, or until {ENOUGH} tries showed it; {TRIES} where luck is needed.",
        *_HOW,
        *([_FRONT if s3 else _DOOR] if faults_at_calls(failure.own_plan) else []),
    ]


def _plain(start: str) -> str:
    """The command in a form that bash reads in the same way as `shlex`."""
    return shlex.join(shlex.split(start)) if re.search(r"[$`*?\[~;&|<>()#!]", start) else start


def _prepared(version: str, s3: bool) -> str:
    """The lines that make what a Hudi server is started with, in the script's directory."""
    launcher, folder = launcher_of(version, s3), files("marker_sim.targets.jvm")
    start = service_command("java", "CLASSES", f"FOLDER/{launcher}")
    start = start.replace("CLASSES", "'$CLASSES'").replace("FOLDER", "$WORK")
    lines = [_written(launcher, (folder / launcher).read_text(encoding="utf-8")), "CLASSES=$BUNDLE:$JARS"]
    if s3:
        settings = (folder / SETTINGS / "core-site.xml").read_text(encoding="utf-8")
        lines += [_written("core-site.xml", settings), '[ -z "$ENDPOINT" ] || CLASSES=$BUNDLE:$WORK:$S3A:$JARS']
    return "\n".join((*lines, f'START="{start}"'))


def _written(name: str, text: str) -> str:
    return f"cat > \"$WORK/{name}\" <<'END'\n{text.rstrip()}\nEND"


def _known(plan: Plan) -> list[tuple[int, str]]:
    """Up to three names of each directory, which the script requests once more at the end."""
    known = []
    for place in range(len(plan.directories)):
        ops = (op for op in plan.ops if op.kind == "create" and op.directory == place)
        names = list(dict.fromkeys(name for op in ops for name in _first_and_last(op)))
        known += [(place, name) for name in dict.fromkeys((*names[:1], *names[len(names) // 2 :][:1], *names[-1:]))]
    return known


def _first_and_last(op: Op) -> tuple[str, str]:
    return op.name.replace(COPY, "0"), op.name.replace(COPY, str(op.copies - 1))
