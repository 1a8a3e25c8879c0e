"""The command line.

app.py         the commands, their help, and every way to end as one sentence and an exit code; options.py: options
settings.py    options of `verify` in pyproject.toml
request.py     the options of `verify`, parsed once
verify.py      carries out the request
replay.py      stored failures again, or smaller; stored.py finds them; handing_over.py: as scripts and texts for others
judge.py       a stored history judged again
mutants.py, chaos.py, serve.py, audit.py  the commands of these names
output.py      standard output and standard error; the progress of a long command
doctor.py      what is on this machine, and how to get what is missing
"""

from marker_sim.cli.app import main

__all__ = ["main"]
