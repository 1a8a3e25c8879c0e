"""Runs many plans, judges each and adds up what came of them.

engine.py      the simulated campaign within a budget; pieces.py, tasks.py: its parts, on several processes
runs.py        one plan run and judged; replay.py: a stored plan again; watchdog.py: a run that never ends
servability.py what a system cannot be judged on, for every search
statistics.py  findings added up to the rows of a verdict
result.py      what one campaign came to
coverage/      what must have happened before anything may be said to hold
nightly/       campaigns of every kind for hours, resumable
"""
