"""`marker-sim mutants --generated N`: changes of the reference that nobody wrote, hunted by the ordinary swarm."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marker_sim import __version__
from marker_sim.cli.mutants import hunted
from marker_sim.cli.request import RUNS_MAX, parse_number, parse_seed
from marker_sim.errors import UsageError
from marker_sim.mutants.generated import (
    BLIND,
    KILLED,
    NO_MUTANT,
    SEEN,
    SURVIVED,
    GeneratedOutcome,
    GeneratedTask,
    drawn,
)  # fmt: skip
from marker_sim.mutants.hunts import HuntTask
from marker_sim.report.directory import open_report
from marker_sim.report.table import output_console
from marker_sim.report.verdict import EXIT_HOLDS, EXIT_INTERRUPTED, EXIT_VIOLATED
from marker_sim.report.write import write_text
from marker_sim.requirements import NEEDS, need
from marker_sim.worker_pool import parse_jobs

SIMULATED, SERVE = OF = ("simulated", "serve")
PLANS = {SIMULATED: "600", SERVE: "6"}
JOBS = {SIMULATED: None, SERVE: "1"}  # Servers in real time need the cores.
COUNT_MAX = 100_000
FILE = "generated.json"
SCHEMA = 1


def generated_mutants(
    *,
    count: str,
    of: str,
    seed: str | None,
    runs: str | None,
    jobs: str | None,
    report: str,
    as_json: bool,
    argv: Sequence[str],
) -> int:
    """Hunt so many; 0 when each survivor has a review, 1 when one has none, 130 when interrupted.

    of: one of OF.
    """
    if of not in OF:
        raise UsageError(f"--of was given {of!r}; write {' or '.join(OF)}")
    number, chosen = parse_number(count, "--generated", COUNT_MAX), parse_seed(seed)
    plans = parse_number(runs or PLANS[of], "--runs", RUNS_MAX)
    processes = parse_jobs(jobs or JOBS[of])
    tasks: Sequence[HuntTask]
    if of == SERVE:
        need("--of serve", *NEEDS["mutants of serve"])
        from marker_sim.mutants import served  # It needs the extras of servers.

        changes = drawn(number, chosen, served.MODULES)
        tasks = [served.ServedTask(change=change, plans=plans, seed=chosen) for change in changes]
    else:
        tasks = [GeneratedTask(change=change, plans=plans, seed=chosen) for change in drawn(number, chosen)]
    directory = Path(report)
    with open_report(directory, argv):
        outcomes, interrupted, trouble = hunted(
            tasks,
            processes,
            lambda done: f"{len(done)} of {len(tasks)}, {sum(each.how in SEEN for each in done)} seen",
            lambda _: False,
        )
        content = summary(outcomes) | {"of": of, "seed": chosen, "plans": plans, "interrupted": interrupted}
        write_text(directory / FILE, json.dumps(content, indent=1) + "\n")
    if trouble is not None:
        raise trouble
    if as_json:
        print(json.dumps(content, indent=1))
    else:
        console = output_console()
        for line in (*told(content), f"all of them: {directory / FILE}"):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_VIOLATED if content["unreviewed"] else EXIT_HOLDS


def summary(outcomes: Sequence[GeneratedOutcome]) -> dict[str, Any]:
    """The content of generated.json.

    rate: of those seen among those that can be: all but what cannot be imported and what a review calls equivalent, a
    bound, harness or own. None when there are none.
    """
    ways = Counter(each.how for each in outcomes)
    reviews = Counter(each.review for each in outcomes if each.how == SURVIVED)
    seen = sum(ways[how] for how in SEEN)
    alive = reviews[""] + reviews[BLIND]
    seconds = sorted(each.seconds for each in outcomes if each.how in SEEN)
    return {
        "schema": SCHEMA,
        "kit_version": __version__,
        "drawn": len(outcomes),
        "ways": dict(ways),
        "reviews": {name or "none": count for name, count in reviews.items()},
        "rate": seen / (seen + alive) if seen + alive else None,
        "median_s": statistics.median(seconds) if seconds else None,
        "worst_s": seconds[-1] if seconds else None,
        "killed_by": dict(Counter(each.guarantee for each in outcomes if each.how == KILLED).most_common()),
        "unreviewed": [each.change.key for each in outcomes if each.how == SURVIVED and not each.review],
        "mutants": [each.to_dict() for each in outcomes],
    }


def told(content: dict[str, Any]) -> list[str]:
    """The survivors that nobody reviewed, and the figures."""
    ways, rows = content["ways"], {row["key"]: row for row in content["mutants"]}
    lines = [f"SURVIVED {key}  {rows[key]['change']}" for key in content["unreviewed"]]
    lines += [f"blind    {row['key']}  {row['change']}" for row in content["mutants"] if row["review"] == BLIND]
    lines.append(", ".join(f"{count} {how}" for how, count in sorted(ways.items(), key=lambda each: -each[1])))
    if content["reviews"]:
        lines.append("survivors by review: " + ", ".join(f"{many} {name}" for name, many in content["reviews"].items()))
    if content["rate"] is not None:
        imported = content["drawn"] - ways.get(NO_MUTANT, 0)
        seconds = "seconds" if content["of"] == SERVE else "seconds of processor"
        lines.append(
            f"seen: {content['rate']:.1%} of those that can be, of {imported} mutants; {seconds} to see one:"
            f" median {content['median_s'] or 0:.2f}, worst {content['worst_s'] or 0:.2f}"
        )
    return lines
