"""The outcome of runs: their counts, the failures that they show, and the result of a campaign.

statistics.py     the findings of many runs added up
failure.py        a violation, as found and as stored; which violations are one defect's
curve.py          the probability of a violation along its run
result.py         the result of a campaign, with a row of each run
marks.py          what happened in a history, by the names of coverage goals
conditions.py     what of a run on real servers can decide a guarantee
process_phase.py  in which phase a process was when a fault was injected
"""
