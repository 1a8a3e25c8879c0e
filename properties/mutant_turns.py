"""At which turn of the swarm each mutant died when it was hunted last: where a test begins, before it hunts again.

python -m properties.mutant_turns      hunts them all and writes the file again, in a few minutes
"""

from __future__ import annotations

import json
from pathlib import Path

from marker_sim.campaign.hunts import swarm
from properties.faces.campaign import Limit
from properties.faces.mutants import MUTANTS, load_mutant

FILE = Path(__file__).with_suffix(".json")
SEARCH = 0
SECONDS_MAX = 60.0
FIRST_TURNS: dict[str, int] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def main() -> None:
    """Hunt every mutant from the beginning."""
    turns = {}
    for mutant in MUTANTS:
        found = swarm(mutant, load_mutant(mutant), SEARCH, Limit(SECONDS_MAX))
        if found.failure:
            turns[mutant.name] = found.plans - 1
    FILE.write_text(json.dumps(turns, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
