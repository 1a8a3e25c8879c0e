"""Hunts drawn changes of the reference, or of its server; 1 when one survives without a review."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marker_sim import __version__
from marker_sim.cli.mutants import hunted
from marker_sim.surroundings.worker_pool import cores
from tools.generated_mutants import served
from tools.generated_mutants.generated import (
    BLIND,
    KILLED,
    NO_MUTANT,
    SEEN,
    SURVIVED,
    GeneratedOutcome,
    GeneratedTask,
    drawn,
)

SIMULATED, SERVE = OF = ("simulated", "serve")
PLANS = {SIMULATED: 600, SERVE: 6}
SCHEMA = 1


def main(words: Sequence[str] | None = None) -> int:
    """Parse the command line, hunt, store and print."""
    parser = argparse.ArgumentParser(prog="python -m tools.generated_mutants", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--of", choices=OF, default=SIMULATED, help="serve: each is run as a process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, help="plans for each")
    parser.add_argument("--jobs", type=int, help="one where servers in real time need the cores")
    parser.add_argument("--out", type=Path, default=Path("generated.json"))
    given = parser.parse_args(words)
    of_serve, plans = given.of == SERVE, given.runs or PLANS[given.of]
    task = served.ServedTask if of_serve else GeneratedTask
    tasks = [
        task(change=change, plans=plans, seed=given.seed).do
        for change in drawn(given.count, given.seed, *([served.MODULES] if of_serve else []))
    ]
    outcomes, interrupted, trouble = hunted(
        tasks,
        given.jobs or (1 if of_serve else cores()),
        lambda done: f"{len(done)} of {len(tasks)}, {sum(each.how in SEEN for each in done)} seen",
        lambda _: False,
    )
    content = summary(outcomes) | {"of": given.of, "seed": given.seed, "plans": plans, "interrupted": interrupted}
    given.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if trouble is not None:
        raise trouble
    print("\n".join(told(content)))
    return 1 if interrupted or content["unreviewed"] else 0


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
    """The survivors without a review, and the figures."""
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


if __name__ == "__main__":
    sys.exit(main())
