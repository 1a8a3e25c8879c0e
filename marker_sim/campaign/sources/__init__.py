"""Where the numbered runs of a search come from; `campaign/pieces.py` judges, counts and keeps them.

swarm.py         plans drawn from a seed, round modes and storages, simulated or run by real processes
exhaustive.py    every crash point of short workloads, and pairs of them

The examples of a state machine are no source: Hypothesis makes them and hands them over, one by one.
"""
