"""The Hypothesis state machines, and campaigns of their examples.

machine.py     `machine_for` makes one, `attack` runs it; the judgement of an example
rules.py       the write path
operations.py  the marker store alone
runs.py        a campaign of the examples of both
"""
