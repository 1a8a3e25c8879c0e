"""A stored plan of a timeline server as a Python script that shows the violation without the kit.

It needs Python and Linux alone. The script (`server_script.py.j2`) starts the server, makes the requests of the plan,
does its faults, looks at what is stored, and decides by itself: 1 violated, 0 held, 3 when a step could not be done.
Where a fault is due at a call of the server on local files, its calls stop at the script (`door.j2`). On S3, where
an answer of the store is due, the server reaches the store through the script. Plans that a script cannot run are
refused in a sentence.
"""

from __future__ import annotations

import pprint
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.judges.findings import by_number
from marker_sim.judges.guarantees import BY_ID
from marker_sim.plan import COPY, Op, Plan
from marker_sim.report.scripts.server_steps import faults_at_calls, not_in_a_script, steps_of
from marker_sim.report.words import plan_sentences, printable
from marker_sim.targets.hudi import NAME as HUDI
from marker_sim.targets.hudi import SETTINGS, launcher_of, service_command
from marker_sim.targets.target import ServerOptions
from marker_sim.worlds.door.table import MACHINES, numbers

BOUND_S = 15
CLIENTS_S = 8
TRIES, ENOUGH = 10, 3  # For a plan that depends on timing: number of tries, and of required violations.
WAITING = frozenset(("G6", "G7"))  # A try that shows one of them takes long.
LOST = frozenset(("G1", "G2", "G3", "G4", "G11"))  # A lost name breaks one of them, depending on when it is noticed.
JUDGED = tuple(f"G{number}" for number in range(1, 13))
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
    "It needs Python 3.11 on Linux, and nothing else. It listens on 127.0.0.1, works in a new directory (KEEP=1 keeps",
    "it) and ends what it started. Exit codes: 1 violated, 0 held, 3 a step could not be done.",
)
_AT_FILES = "Calls of the server on its files stop at this script, by a seccomp listener, which Linux has since 5.19."
_AT_S3 = "The server reaches S3 through this script, which refuses the requests that are named above."


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


def server_script(failure: StoredPlan) -> str:
    """The script; UsageError says which part of the plan a script cannot do."""
    plan, server = failure.own_plan, failure.server or ServerOptions()
    problem = _problem(failure)
    if problem:
        raise UsageError(f"{failure.title} cannot be shown by a script: {problem}")
    steps = steps_of(plan, server.identity)
    claims = set(JUDGED) & {failure.guarantee, *failure.also}
    claims |= LOST if claims & LOST else set()
    hudi, s3 = failure.sut.partition(":")[0] == HUDI, plan.storage == "s3"
    faults_ms = sum(fault.settings.for_ms + max(0, fault.settings.restart_ms) for fault in plan.faults)
    start, prepared = _start_of_hudi(failure.version, s3) if hudi else (server.start, {})
    values = {
        "guarantee": failure.guarantee,
        "title": failure.title,
        "claims": by_number(claims),
        "places": list(plan.directories),
        "start": start,
        "files": prepared,
        "reader": server.reader,
        "at_answers": bool(claims & {"G1", "G2"}) and not server.reader,
        "scheme": server.dir_format or "s3a",
        "form": "file:" if server.dir_format == "file" else "",
        "known": _known(plan),
        "due": list(steps.due),
        "at_calls": faults_at_calls(plan),
    }
    return render_script(
        "server_script.py.j2",
        head=in_docstring(_head(failure, hudi, s3)),
        tries=1 if steps.alone else TRIES,
        enough=1 if claims <= WAITING else ENOUGH,
        threads=plan.num_threads,
        interval_ms=plan.interval_ms,
        bound_ms=BOUND_S * 1000,
        wait_s=BOUND_S + 2 + faults_ms // 1000,
        clients_s=CLIENTS_S,
        hudi=hudi,
        s3=s3,
        steps=steps.text,
        door="" if s3 or not values["at_calls"] else door_program(),
        front=s3 and bool(values["at_calls"]),
        **{name: literal(value) for name, value in values.items()},
    )


def literal(value: object) -> str:
    """The value as a Python literal in ASCII."""
    if isinstance(value, str):
        return ascii(value)
    text = pprint.pformat(value, width=110, compact=True, sort_dicts=False)
    return "".join(letter if letter.isascii() else ascii(letter)[1:-1] for letter in text)


def in_docstring(lines: Iterable[str]) -> list[str]:
    """The lines as they may stand in the docstring of a script."""
    return [printable(line).replace('"""', "'''") for line in lines]


def door_program() -> str:
    """The part of a script at which calls of a program stop, with the numbers of the calls that the door knows."""
    known = {machine.name: (machine.audit, numbers(machine)) for machine in MACHINES}
    return render_script("door.j2", machines=literal(known)).rstrip("\n")


def render_script(template: str, **content: Any) -> str:
    """A script from its template, in which values are literals already."""
    return _SCRIPTS.get_template(template).render(**content)


def _problem(failure: StoredPlan) -> str:
    """The reason why a script cannot do the plan, "" when it can."""
    plan = failure.own_plan
    if failure.guarantee not in JUDGED:
        return f"it judges {JUDGED[0]} to {JUDGED[-1]}, what clients and the storage of a timeline server see"
    if plan.mode != "timeline" or plan.writes or plan.storage not in ("local", "s3"):
        return "it needs more than requests to a timeline server on a directory or on S3"
    for fault in plan.faults:
        why = not_in_a_script(fault, plan)
        if why:
            return f"{why} ({fault.kind.value} of {fault.target or 'any process'})"
    return ""


def _head(failure: StoredPlan, hudi: bool, s3: bool) -> list[str]:
    """The text at the beginning of the script."""
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
        "",
        *settings,
        f"TRIES is how often the steps are tried, or until {ENOUGH} tries showed it; {TRIES} where luck is needed.",
        *_HOW,
        *([_AT_S3 if s3 else _AT_FILES] if faults_at_calls(failure.own_plan) else []),
    ]


def _start_of_hudi(version: str, s3: bool) -> tuple[str, dict[str, str]]:
    """The command of a Hudi server, and the texts of the files that it needs, by their names in {folder}."""
    launcher, folder = launcher_of(version, s3), files("marker_sim.targets.jvm")
    texts = {launcher: (folder / launcher).read_text(encoding="utf-8")}
    if s3:
        texts["core-site.xml"] = (folder / SETTINGS / "core-site.xml").read_text(encoding="utf-8")
    return service_command("java", "{classes}", f"{{folder}}/{launcher}"), texts


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
