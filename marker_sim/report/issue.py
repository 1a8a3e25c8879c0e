"""A failure as text for an issue tracker: the promise, the observation, the steps, and a script that shows it."""

from __future__ import annotations

from marker_sim.errors import UsageError
from marker_sim.judges.guarantees import BY_ID
from marker_sim.report.script import FailureDescription
from marker_sim.report.table_script import script_of
from marker_sim.report.words import plan_sentences, printable

SCRIPT_MAX = 60_000  # GitHub takes texts of 65,536 characters.


def issue_text(failure: FailureDescription) -> str:
    """The text as Markdown; where no script can run the plan, the reason stands in its place."""
    known = BY_ID[failure.guarantee]
    lines = [
        f"# {failure.sut}: {known.slug} is broken" + (f": {printable(failure.message)}" if failure.message else ""),
        "",
        f"**Promised** ({known.id}): {known.sentence}",
        f"**Written:** {failure.source or 'nowhere that is known'}",
        f"**Versions:** {failure.versions}",
    ]
    lines += [f"**How often:** {failure.often}"] if failure.often else []
    lines += [f"**The same cause also breaks:** {', '.join(failure.also)}"] if failure.also else []
    lines += ["", "## Steps", "", *(f"- {printable(sentence)}" for sentence in plan_sentences(failure.plan))]
    if failure.evidence:
        lines += ["", "## What was seen", "", *_fenced("\n".join(failure.evidence))]
    lines += ["", "## A script that shows it", ""]
    try:
        script, language = script_of(failure)
    except UsageError as error:
        return "\n".join((*lines, f"{error}.", ""))
    if len(script) > SCRIPT_MAX:
        lines += ["It is long; attach what `marker-sim replay --script` writes.", ""]
        return "\n".join(lines)
    return "\n".join((*lines, *_fenced(script.rstrip("\n"), language), ""))


def _fenced(text: str, language: str = "") -> tuple[str, str, str]:
    fence = "```" if "```" not in text else "`````"
    return f"{fence}{language}", text, fence
