"""docs/findings.md from stored failures: runs their scripts in a shell without the kit, and writes what they showed.

    python -m scenarios.findings [STORY ...] [--on 1.2.0-local,1.0.2-s3]    run the scripts, write the documents
    python -m scenarios.findings --write | --check                          run nothing; --check writes nothing either
    python -m scenarios.findings --take REPORT/failures/PLAN.json           store a failure of a report for its story
    python -m scenarios.findings STORY --count 4 [--on 1.2.0-local]         run the plans, and store how often they fail

A script runs where its plan was found, and where it ran before; --on names more. It needs Java and Hudi's
bundle, and moto for what was found on S3.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from contextlib import nullcontext
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from marker_sim.errors import UsageError
from properties.faces.report import script_of, write_text
from scenarios.findings.document import DOCS, differences, documents, texts
from scenarios.findings.stored_finding import ScriptRun, StoredFinding, read_findings, steps_digest, write_finding
from scenarios.findings.taking import Found, counted, taken
from scenarios.plain_shell import (
    run_script,
    s3_store,
    same_in_every_run,
    settings_of_hudi,
    settings_of_java_client,
)

TIMEOUT_S = 900
LINES_MAX, ALIKE_MAX = 40, 8  # Of a transcript, and of lines of one kind one after the other.


def main() -> int:
    """Do what was asked for; 1 when a document differs, 2 for wrong usage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", nargs="*", metavar="STORY", help="anchors of docs/findings.md; default: all")
    parser.add_argument("--on", default="", metavar="VERSION-STORAGE,...")
    parser.add_argument("--tries", type=int, help="how often a script tries at most; default: what it says itself")
    parser.add_argument(
        "--missing",
        action="store_true",
        help="only what was not run as it is now, or not counted",
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--take", type=Path, metavar="PLAN")
    parser.add_argument(
        "--story", default="", help="of the plan that is taken; default: as the shipped baselines have it"
    )
    parser.add_argument("--budget", default="", help="that the campaign of the plan that is taken had")
    parser.add_argument("--walk", default="", help="the words of the walk of the plan that is taken, instead")
    parser.add_argument("--shrunk", default="", help="the words of `shrink` for the plan that is taken")
    parser.add_argument("--count", type=int, metavar="K", help="run each plan K times, and no script")
    asked = parser.parse_args()
    try:
        return _done(asked)
    except UsageError as error:
        print(f"scenarios.findings: {error}", file=sys.stderr)
        return 2


def _done(asked: argparse.Namespace) -> int:
    if asked.take is not None:
        how = Found(budget=asked.budget, walk=asked.walk, shrunk=asked.shrunk)
        new = taken(asked.take, asked.story, how)
        write_finding(new)
        print(f"{new.name}: {new.guarantee} {new.cause}, {new.told.own_plan.entries} entries")
        return 0
    stored = {each.name: each for each in read_findings()}
    if asked.check:
        found = tuple(differences(tuple(stored.values())))
        print(*found, sep="\n", end="\n" if found else "")
        return 1 if found else 0
    for name in asked.stories or (() if asked.write else tuple(stored)):
        if name not in stored:
            raise UsageError(f"{name} is no stored finding; there are {', '.join(stored)}")
        for sut, storage in _places(stored[name], asked.on, bool(asked.count)):
            if asked.count and asked.missing and f"{sut.partition(':')[2]} {storage}" in stored[name].counts:
                continue
            if asked.count:
                stored[name] = counted(stored[name], sut, storage, asked.count)
                write_finding(stored[name])
                print(name, sut, stored[name].counts, flush=True)
                continue
            same = ((run.sut, run.storage, run.steps) for run in stored[name].ran)
            if asked.missing and (sut, storage, stored[name].steps) in same:
                continue
            stored[name] = _ran(stored[name], sut, storage, asked.tries)
            write_finding(stored[name])
    for name, text in documents(tuple(stored.values()), texts()).items():
        write_text(DOCS / name, text)
    return 0


def _places(stored: StoredFinding, more: str, plans: bool) -> list[tuple[str, str]]:
    """Where a script is to be run, or a plan: a version and a storage each."""
    if stored.plan is None or (stored.no_script and not plans):
        return []
    own = [(stored.sut, stored.told.own_plan.storage)]
    own += [] if plans else [(run.sut, run.storage) for run in stored.ran]
    named = [
        (f"{stored.sut.partition(':')[0]}:{version}", storage)
        for version, _, storage in (word.rpartition("-") for word in more.split(","))
        if version
    ]
    return list(dict.fromkeys((*own, *named)))


def _ran(stored: StoredFinding, sut: str, storage: str, tries: int | None) -> StoredFinding:
    """A finding with a run of its script on a version and a storage."""
    version = sut.partition(":")[2]
    plan = replace(stored.told.own_plan, storage=storage)
    script, language = script_of(replace(stored.told, plan=plan, sut=sut, version=version))
    limit = {} if tries is None else {"TRIES": str(tries)}
    with tempfile.TemporaryDirectory() as folder, s3_store() if storage == "s3" else nullcontext("") as endpoint:
        settings = settings_of_java_client(version) if stored.in_java else settings_of_hudi(version, endpoint)
        done = run_script(script, Path(folder), TIMEOUT_S, language, **limit, **settings)
    lines = tuple(map(same_in_every_run, done.lines))
    print(f"{stored.name} {version} {storage}: exit code {done.code}; {lines[-1]}", flush=True)
    run = ScriptRun(sut=sut, storage=storage, code=done.code, last=lines[-1], steps=steps_digest(script))
    return stored.with_run(run, _transcript(lines))


def _transcript(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The last try, without the middle of what is long."""
    starts = [number for number, line in enumerate(lines) if line.startswith("# try ")]
    own = [line for line in lines[starts[-1] if starts else 0 :] if line]
    shorter = [line for _, group in groupby(own, _alike) for line in _middle_left_out(tuple(group), ALIKE_MAX)]
    return _middle_left_out(tuple(shorter), LINES_MAX)


def _alike(line: str) -> str:
    """Equal for lines of which a few are enough: requests that had the same answer, and stored names."""
    asked = re.match(r"\$ create\d? .* -> (.{0,12})", line)
    return f"create {asked[1]}" if asked else "name" if line.endswith("$") else line


def _middle_left_out(lines: tuple[str, ...], most: int) -> tuple[str, ...]:
    more = len(lines) - most
    return lines if more < 2 else (*lines[: most // 2], f"... {more} more", *lines[-(most - most // 2) :])


if __name__ == "__main__":
    sys.exit(main())
