"""Conditions that a campaign must meet before a guarantee may hold.

goals.py                events that must have happened at least once
gaps.py                 which of them a campaign missed, and how much must have happened
fault_matrix.py         which fault was injected in which phase
canary.py               a known defect must be detected first
"""
