"""The parts of documents that follow from stored findings, and the text for a tracker of one of them.

Every part stands between two comments, and a command alone changes it; the prose around it is written by hand.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from marker_sim.errors import UsageError
from marker_sim.plan import Plan
from properties.faces.report import issue_text, plan_sentences, printable
from scenarios.findings.stored_finding import ScriptRun, StoredFinding

DOCS = Path(__file__).parents[2] / "docs"
COMMAND = "python -m scenarios.findings"
TRACKER, TRACKED = "tracker-example.md", "names-glued-together-after-a-restart"
TABLE = "table"
SHOWN = 120  # Characters of a line of a transcript.
SENTENCES = 12  # Of a plan.
_PART = re.compile(r"<!-- script: (\S+) -->\n.*?<!-- end of script -->", re.DOTALL)


def texts(docs: Path = DOCS) -> dict[str, str]:
    """The documents with parts of findings, by their names in docs: findings.md, a page for each, and their figures."""
    files = (docs / "findings.md", *sorted(docs.glob("findings/*.md")), *sorted(docs.glob("benchmarks/*.md")))
    return {file.relative_to(docs).as_posix(): file.read_text(encoding="utf-8") for file in files if file.is_file()}


def documents(stored: Sequence[StoredFinding], written: Mapping[str, str]) -> dict[str, str]:
    """Names of files in docs with their text, as the stored findings have it.

    written: as `texts` has it; the prose is kept. UsageError where a part or a finding has no partner.
    """
    places = {
        _anchor(title): (title, name if name.startswith("findings/") else f"{name}#{_anchor(title)}")
        for name, text in written.items()
        for title in re.findall(r"^##? (.*)$", text, re.MULTILINE)
    }
    there = [part for text in written.values() for part in _PART.findall(text)]
    for name in sorted({*(each.name for each in stored), TABLE} ^ {*there}):
        has = name in there
        raise UsageError(
            f"docs has {'a' if has else 'no'} part {name!r} and there is {'no' if has else 'a'} stored finding of that"
            " name; write both or none"
        )
    made = {each.name: each for each in stored}

    def filled(file: str, part: re.Match[str]) -> str:
        own = _table(stored, places, file) if part[1] == TABLE else _story(made[part[1]], "../" * (file.count("/") + 1))
        return f"<!-- script: {part[1]} -->\n{own}\n<!-- end of script -->"

    found = {file: _PART.sub(partial(filled, file), text) for file, text in written.items()}
    tracked = made.get(TRACKED)
    return found | ({TRACKER: issue_text(tracked.told)} if tracked and tracked.plan else {})


def differences(stored: Sequence[StoredFinding], docs: Path = DOCS) -> Iterator[str]:
    """A sentence for each document that says something else than the stored findings, and each script that changed."""
    for name, text in documents(stored, texts(docs)).items():
        file = docs / name
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            yield f"docs/{name} does not say what is stored; `{COMMAND} --write` writes it"
    for each in stored:
        if each.plan is not None and not each.no_script and any(run.steps != each.steps for run in each.ran):
            yield f"the script of {each.name} is not the one that was run; `{COMMAND} {each.name}` runs it"


def _story(stored: StoredFinding, up: str) -> str:
    """The part of a finding; up: the way from its file to the project."""
    if stored.plan is None:
        return f"No script: {stored.missed}"
    plan = Plan.from_dict(stored.plan)
    entries = f"{plan.entries} entr{'y' if plan.entries == 1 else 'ies'}"
    beside = f", and {', '.join(stored.also)}" if stored.also else ""
    lines = [
        f"[A plan]({up}scenarios/findings/stored/{stored.name}.json) of {entries}, {_origin(stored)}."
        f" It breaks {stored.guarantee} (`{stored.cause}`){beside}{_often(stored)}.",
        "",
    ]
    # In Markdown `[^` begins a footnote.
    sentences = [f"- {_cut(printable(sentence))}".replace("[^", r"\[^") for sentence in plan_sentences(plan)]
    more = len(sentences) - SENTENCES
    lines += [*sentences[:SENTENCES], *([f"- and {more} more"] if more > 0 else []), ""]
    if stored.no_script:
        return "\n".join((*lines, f"No script: {stored.no_script}."))
    if not stored.ran:
        return "\n".join((*lines, "Its script was not run yet."))
    lines += ["Its script, without the kit:", "", "| Hudi | storage | exit code | |", "|---|---|---|---|"]
    lines += [f"| {run.sut.partition(':')[2]} | {run.storage} | {run.code} | {_last(run)} |" for run in stored.ran]
    return "\n".join((*lines, "", "```", *map(_cut, stored.transcript), "```"))


def _origin(stored: StoredFinding) -> str:
    found = f"found by `{stored.command}` in {stored.after_s} s" if stored.command else ""
    return ", ".join(filter(None, (found, stored.by_hand)))


def _often(stored: StoredFinding) -> str:
    return stored.often.replace("breaks in", " in") if stored.often else ""


def _cut(line: str) -> str:
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}..."


def _last(run: ScriptRun) -> str:
    """How often it showed the failure."""
    return run.last.partition(":")[0].replace("|", "\\|")


def _anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _table(stored: Sequence[StoredFinding], places: Mapping[str, tuple[str, str]], file: str) -> str:
    """A row for each finding, in the order of their stories. places: their titles and files."""
    lines = [
        "| finding | breaks | local | S3 | plan of | entries | fails in | its script |",
        "|---|---|---|---|---|---|---|---|",
    ]
    order = list(places)
    for each in sorted(stored, key=lambda finding: order.index(finding.name) if finding.name in order else len(order)):
        title, place = places.get(each.name, (each.name, file))
        way = os.path.relpath(place, os.path.dirname(file)) if place.partition("#")[0] != file else f"#{each.name}"
        link = f"[{title}]({way}) | {each.promises} | {each.local} | {each.s3}"
        if each.plan is None:
            lines.append(f"| {link} | none | | | none |")
            continue
        plan, run = Plan.from_dict(each.plan), each.ran[0] if each.ran else None
        origin = "by hand" if each.by_hand else "a walk" if "walk" in each.command else "a campaign"
        shown = "no script can" if each.no_script else _last(run) if run else "not run"
        often = "; ".join(f"{how} ({', '.join(_versions(each, how))})" for how in dict.fromkeys(each.counts.values()))
        lines.append(f"| {link} | {origin}, {each.version} {plan.storage} | {plan.entries} | {often} | {shown} |")
    return "\n".join(lines)


def _versions(stored: StoredFinding, how: str) -> list[str]:
    """The versions on which a plan failed so often."""
    return sorted(place.partition(" ")[0] for place, often in stored.counts.items() if often == how)
