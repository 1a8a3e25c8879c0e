"""The nightly: every way to search and every world that is here, within a budget, resumable after a kill.

    night.py     hands out units until the budget is used; the only process that writes
    stages.py    which part of the budget belongs to which stage, and what is missing here
    ranges.py    which numbers of a stream were done, and the next ones to do
    desk.py      what a worker does with a unit (pool.py), work*.py: its counts
    ledger.py    the record: one line for each unit that was done, appended and synced
    failures.py  what the ledger says was broken, as replay files of which each can be opened for good
    totals.py    what the ledger says was done, a row for each night
    summary.py   those rows for people

The ledger is the only truth. A unit is a range of numbers on a stream (turns of the swarm, cases of the exhaustive
search, real plans), all that came of it is in its one line, and everything else in the directory is made from those
lines again at each start. So whatever is cut short either has its line, or is done again and counts once.
"""
