"""Runs many plans, judges each history and adds up the results.

engine.py                 one campaign against one target, whatever it is: run, judge, count, keep what broke
planned_runs.py           runs that are plans: spread over processes, run again, shrunk
played_rounds.py          runs that are rounds in real time, a few at a time
pieces.py, tasks.py       its unit of work, done by this process or by a worker
runs.py                   one plan run and judged
statistics.py, result.py  the findings of many runs added up; the result of a campaign
servability.py            when a system cannot be judged at all
replay.py                 a stored plan again
exhaustive.py             the bounded-exhaustive search
machine*.py               the Hypothesis state machine; conformance.py offers it to other projects
coverage/                 what must have happened before a guarantee may be said to hold
nightly/                  `marker-sim chaos`: campaigns of every kind for hours, resumable
"""
