"""`marker-sim chaos`: every search and every world available here, within a budget, resumable after a kill.

nightly_run.py   hands out units until the budget is used; the only process that writes
opening.py       begins it, or goes on with the last one; its stages, and what cannot run on this machine
units.py         a worker carries out one unit: the runs of a source as a line
spark_pool.py    executors of a Spark cluster as workers, and what an executor does
ledger.py        one line per finished unit, appended and synced
parquet.py       runs, coverage and violations as Parquet
failures.py      failures of the ledger as replay files
totals.py        the ledger added up: one row per night, the numbers done; summary.py: the same as text and JSON
page.py          summary.html (page.html.j2), and the three files put in place

The ledger is the only record; everything else in the directory is derived from it at each start. A unit is a range of
numbers on a stream (turns of the swarm, cases of the exhaustive search, plans for real processes and servers). An
interrupted unit has no line, so it is done again and counts once.
"""
