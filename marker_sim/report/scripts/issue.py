"""The text of a stored failure for an issue tracker, in the order of Hudi's template for bugs (issue.md.j2).

`issue.toml` has titles, what a failure means for a reader of the table, and of released Hudi the cause in its code. Of
a failure that no script can show, plan.json is in the text, which the kit plays.
"""

from __future__ import annotations

import json
import re
import tomllib
from importlib.resources import files

from marker_sim.campaign.stored_plan import StoredPlan
from marker_sim.errors import UsageError
from marker_sim.judges.findings import split_impact
from marker_sim.judges.guarantees import BY_ID
from marker_sim.report.scripts.server_script import render_script
from marker_sim.report.scripts.table_script import options_of, script_of
from marker_sim.report.scripts.writers_script import rows_lost
from marker_sim.report.words import plan_sentences

SCRIPT_MAX = 50_000  # Longer ones are attached: GitHub accepts texts of 65,536 characters.
# Of this run alone, or of the kit: numbers of its events, the folder of a run, the names of its errors.
_OWN = re.compile(
    r",? (?:at|from|until|after|of) event \d+(?: on)?| \(event \d+\)| \(fault: .*\)|\bp\d+-\d+/"
    r"|; its last change was event \d+|\bevent \d+ |\S*/marker-sim-\w+(?:/t\d+/storage)?/"
    r"|(?<![.\w])[A-Z]\w*Error: |^t\d+(?:/\d+)?(?: as hudi reads it)?: "
)
_RELEVANT = re.compile(
    "marker|metadata|index.type|table.(?:type|version)|small.file|concurrency|failed.writes|heartbeat"
)


def told_of(failure: StoredPlan) -> dict[str, str]:
    """The title of a failure, its impact, the cause in Hudi's code and what was reported of it, "" for unknown."""
    plan, horizon = failure.own_plan, split_impact(failure.message)[0]
    raw = tomllib.loads((files(__package__) / "issue.toml").read_text(encoding="utf-8"))
    words = "\n".join((*plan_sentences(plan), failure.message))
    row = next(
        row
        for row in raw["text"]
        if re.fullmatch(row.get("system", ".*"), failure.sut.partition(":")[0])
        and row.get("writers", False) <= (plan.shape is not None and plan.shape.writers > 0)
        and failure.guarantee in row.get("guarantee", (failure.guarantee,))
        and failure.cause in row.get("cause", (failure.cause,))
        and re.search(row.get("seen", ""), words)
    )
    impact = row["impact"].format(**raw["words"])
    if "writers" in row:
        impact = rows_lost(failure) or f"No row is lost in this run; {impact}."
    return {"code": "", "reported": "", **row, "impact": f"{horizon}. {impact}" if horizon else impact}


def issue_text(failure: StoredPlan) -> str:
    """The text as Markdown."""
    script, language, why = json.dumps(failure.own_plan.to_dict()), "json", ""
    if failure.sut.startswith(("hudi", "http")):
        try:
            script, language = script_of(failure)
        except UsageError as error:
            why = f"{error}. "
    options = options_of(failure) if failure.own_plan.shape else {}
    message = split_impact(failure.message)[1]
    return render_script(
        "issue.md.j2",
        failure=failure,
        told=told_of(failure),
        known=BY_ID,
        message=message,
        happened=_OWN.sub("", message),
        steps=plan_sentences(failure.own_plan),
        why=why,
        language=language,
        script=script if len(script) < SCRIPT_MAX else "",
        configs={name: value for name, value in options.items() if _RELEVANT.search(name)},
    )
