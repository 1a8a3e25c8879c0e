"""The outcome of runs: their counts, the failures that they show, and the result of a campaign.

statistics.py     the findings of many runs, added up
failure.py        a violation, as found and as stored; which violations have one defect in common
curve.py          the probability of a violation along its run
result.py         the result of a campaign, with a row for each run
marks.py          finds coverage goals in a history
conditions.py     the conditions of runs on real servers that can decide a guarantee
process_phase.py  the phase of each process when a fault was injected
"""
