"""Run the same seeds in two processes with different hash seeds and compare the histories byte for byte."""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import subprocess
import sys

from marker_sim.plan import PLACES
from marker_sim.system import reference
from properties.faces.search import make_plan, make_write_plan
from properties.faces.worlds import run


def digests(seeds: int, first: int) -> None:
    """Print one digest a seed: of a plan of operations or of writes in turn, in every mode and storage."""
    gc.disable()
    for number in range(first, first + seeds):
        mode, storage = PLACES[number // 2 % len(PLACES)]
        make = make_write_plan if number % 2 else make_plan
        digest = hashlib.sha256()
        for line in run(make(number, mode, storage), reference()).lines():
            digest.update(line.encode("utf-8", "surrogatepass"))
        print(number, digest.hexdigest())
        if number % 200 == 0:
            gc.collect()


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--print-digests", action="store_true", help="what the two processes are asked to do")
    arguments = parser.parse_args()
    if arguments.print_digests:
        digests(arguments.seeds, arguments.first)
        return
    first = [f"--seeds={arguments.seeds}", f"--first={arguments.first}"]
    command = [sys.executable, "-m", "properties.same_seed_twice", "--print-digests", *first]
    running = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, text=True)
        for seed in ("1", "4242")
    ]
    one, two = [process.communicate()[0].splitlines() for process in running]
    different = sum(a != b for a, b in zip(one, two, strict=True))
    print(f"{len(one)} seeds twice in different processes, {different} different histories")
    sys.exit(1 if different or len(one) != arguments.seeds else 0)


if __name__ == "__main__":
    main()
