"""What a campaign must have met before it may say that anything holds.

goals.py                what must have happened at least once; marks.py finds it in histories
activity_thresholds.py  how much must have happened
fault_matrix.py         which fault struck in which phase; process_phase.py tells the phase
determinism_check.py    the same plans in another process
canary.py               a planted defect that must be seen; tampered_history.py where no mutant can run
"""
