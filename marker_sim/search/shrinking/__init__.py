"""Makes failing plans smaller.

shrinker.py               runs the candidates, and keeps those that still fail
operations.py, writes.py  the candidates of plans of operations and of writes
jobs.py                   the same for tables that a released Hudi writes, where a try costs a quarter of a minute
by_history.py             from the history of the failing run: its calls in order, or those that overlapped
by_evidence.py            from the evidence of a breach: few candidates, for runs that cost a second
"""
