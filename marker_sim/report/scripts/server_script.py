"""A stored plan of a timeline server as a Python script that shows the violation without the kit.

It needs Python and Linux alone. The script (`server_script.py.j2`) starts the server, makes the requests of the plan,
does its faults, looks at what is stored, and decides by itself: 1 violated, 0 held, 3 when a step could not be done.
Where a fault is due at a call of the server on local files, its calls stop at the script (`door.j2`). On S3, where
an answer of the store is due, the server reaches the store through the script. Plans that a script cannot run are
refused in a sentence.
"""

from __future__ import annotations

import json
import pprint
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.judges.findings import by_number, split_impact
from marker_sim.judges.guarantees import BY_ID
from marker_sim.plan import COPY, Op, Plan
from marker_sim.report.scripts.server_steps import faults_at_calls, not_in_a_script, steps_of
from marker_sim.report.words import plan_sentences, printable
from marker_sim.targets.hudi import NAME as HUDI
from marker_sim.targets.hudi import SETTINGS, launcher_of, service_command
from marker_sim.targets.target import ServerOptions
from marker_sim.worlds.door.table import MACHINES, numbers

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


def head_of(failure: StoredPlan) -> tuple[str, ...]:
    """The first lines of every script: guarantee, source of the promise, versions, plan, and an empty one."""
    versions = failure.sut
    if failure.version not in ("", failure.sut.partition(":")[2]):
        versions += f" {failure.version}"
    if failure.kit_version:
        versions += f", found by marker-sim {failure.kit_version}"
    impact, message = split_impact(failure.message)
    return (
        f"{failure.title} is broken" + (f": {message}" if message else ""),
        *([f"Impact:    {impact}"] if impact else ()),
        "",
        f"Promised:  {BY_ID[failure.guarantee or ''].sentence}",
        f"Written:   {failure.source or 'nowhere that is known'}",
        f"Seen with: {versions}" + (f"; {failure.often}" if failure.often else ""),
        "",
        *plan_sentences(failure.own_plan),
        "",
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
    at_calls = faults_at_calls(plan)
    return render_script(
        "server_script.py.j2",
        head=head_of(failure),
        guarantee=failure.guarantee,
        title=failure.title,
        claims=by_number(claims),
        places=list(plan.directories),
        start=start,
        files=prepared,
        reader=server.reader,
        at_answers=bool(claims & {"G1", "G2"}) and not server.reader,
        scheme=server.dir_format or "s3a",
        form="file:" if server.dir_format == "file" else "",
        known=_known(plan),
        due=list(steps.due),
        at_calls=at_calls,
        alone=steps.alone,
        waiting=claims <= WAITING,
        threads=plan.num_threads,
        interval_ms=plan.interval_ms,
        faults_ms=faults_ms,
        hudi=hudi,
        s3=s3,
        steps=steps.text,
        door=bool(at_calls) and not s3,
        front=bool(at_calls) and s3,
    )


def literal(value: object) -> str:
    """The value as a Python literal in ASCII."""
    if isinstance(value, str):
        return ascii(value)
    text = pprint.pformat(value, width=110, compact=True, sort_dicts=False)
    return "".join(letter if letter.isascii() else ascii(letter)[1:-1] for letter in text)


def render_script(template: str, **content: Any) -> str:
    """A script from its template, which writes values as literals of its language."""
    return _SCRIPTS.get_template(template).render(**content)


# JSON has the escapes of Java's literals, for what is no letter of ASCII as well.
_SCRIPTS.filters |= {"literal": literal, "java": json.dumps, "printable": printable}
_SCRIPTS.globals |= {"machines": {machine.name: (machine.audit, numbers(machine)) for machine in MACHINES}}


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
