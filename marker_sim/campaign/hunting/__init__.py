"""Campaigns against mutants: which judge kills each, and how soon.

hunts.py  the ways to search for a mutant's defect
kill.py   the kill matrix
"""
