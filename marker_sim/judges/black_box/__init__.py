"""Judges of a write path that is observed from outside: its storage requests, and audits of its tables.

ends.py       G13, G18, G19: files that are stored when a write ends
files.py      G14, G15: data files of a table at rest
rollbacks.py  G16: rollbacks that were interrupted
refusals.py   G16, G19, G25: writes that do not complete
rows.py       G24: rows that readers find
"""
