"""The command line.

app.py         the commands, their help, and every way to end as one sentence and an exit code; options.py: options
request.py     the options of `verify`, also those in pyproject.toml, parsed once
verify.py      carries out the request
replay.py      stored failures again, or smaller; stored.py finds them; handing_over.py: as scripts and texts for others
judge.py       a stored history judged again
mutants.py, chaos.py, serve.py, audit.py  the commands of these names
output.py      standard output and standard error; the progress of a long command
doctor.py      what is on this machine, and how to get what is missing
"""

import sys
from collections.abc import Sequence

from marker_sim.errors import EXIT_INTERRUPTED


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; raises nothing, also when Ctrl-C comes while it is being loaded."""
    try:
        from marker_sim.cli.app import main as run

        return run(argv)
    except KeyboardInterrupt:
        print("marker-sim: interrupted before any result", file=sys.stderr)
        return EXIT_INTERRUPTED
