"""Runs many plans, judges each history and adds up the results.

engine.py                 one campaign against any target: run, judge, count, keep failures
planned_runs.py           runs that are plans: spread over processes, run again, shrunk
played_runs.py            runs in real time, a few at a time
played_shrinking.py       a failing plan made smaller against a real server, where one run proves nothing
pieces.py, tasks.py       its unit of work, done by this process or by a worker
runs.py, run_rows.py      one plan run and judged; a row of it for tables
statistics.py, result.py  the findings of many runs added up; the result of a campaign
servability.py            when a system cannot be judged at all
comparison.py             two systems on the same plans
replay.py                 runs a stored plan again
exhaustive.py             the bounded-exhaustive search
machine*.py               the Hypothesis state machines, and campaigns of their examples
coverage/                 conditions for a guarantee to hold
nightly/                  `marker-sim chaos`: campaigns of every kind for hours, resumable
"""
