"""Runs many plans, judges each history and adds up the results.

engine.py                 one campaign against any target: run, judge, count, keep failures
planned_runs.py           runs that are plans: spread over processes, run again, shrunk
played_runs.py            runs in real time, a few at a time
played_shrinking.py       a failing plan made smaller against a real server, where one run proves nothing
pieces.py                 its unit of work, done by this process or by a worker, and all that was found so far
runs.py                   one plan run and judged
simulated_failure.py      its smallest plan, and the event that decides it
comparison.py             two systems on the same plans
replay.py                 runs a stored plan again; stored_plan.py: what it is
sources/                  where numbered runs come from: the swarm, crashes, processes
machines/                 the Hypothesis state machines, and campaigns of their examples
hunts.py                  campaigns against mutants: which judge kills each, and how soon
coverage/                 conditions for a guarantee to hold
nightly/                  `marker-sim chaos`: campaigns of every kind for hours, resumable
"""
