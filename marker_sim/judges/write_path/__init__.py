"""Judges of a write path that records its steps: attempts, reconcile, commit, rollback.

commits.py    G13, G14: a write that succeeds
rollbacks.py  G15, G16, G19: after a write that failed
leftovers.py  G17, G18, G20: markers and data files after an instant has ended
rows.py       G24: rows that a reader finds at the end
progress.py   G25: writes complete
steps.py      shared: when these guarantees apply
"""
