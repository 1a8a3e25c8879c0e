"""Guarantees as differences of sets: answered minus stored, stored minus created, committed and stored data files.

rules.py    the facts, one rule a difference, also as SQL for Spark, and the findings of counted differences

A rule proves a breach and never that a guarantee holds as a whole: the order of events, listings and every moment but
the last are for the other judges.
"""
