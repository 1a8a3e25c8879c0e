"""The command line: verify, replay, judge and doctor.

app.py       commands and options, and every way to end turned into one sentence and an exit code
request.py   what was asked of `verify`, parsed once
verify.py    a request carried out in the world it names
replay.py    a stored failure again
judging.py   a stored history judged again
progress.py  the line on standard error
"""

from marker_sim.cli.app import main

__all__ = ["main"]
