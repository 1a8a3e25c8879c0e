"""Makes failing plans smaller.

shrinker.py    runs the candidates, and keeps those that still fail
candidates.py  which candidates there are, of operations and of writes
jobs.py        the same for tables that a released Hudi writes, where a try costs a quarter of a minute
by_history.py  what happened in the failing run: its calls in order, those that met each other, or what the evidence
               of a breach speaks of
"""

from __future__ import annotations

RUNS_MAX = 4_000  # Of candidates while one failure is shrunk.
SMALL = 3  # Plans with at most this many entries are not made smaller by leaving out parts at once.
