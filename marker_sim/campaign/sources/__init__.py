"""Where the numbered runs of a search come from; `campaign/pieces.py` judges, counts and keeps them.

swarm.py         plans drawn from a seed, round modes and storages
exhaustive.py    every crash point of short workloads, and pairs of them
processes.py     plans of the swarm, run by real processes
spark.py         jobs on a Spark cluster
servers.py       plans of systems whose runs take real time

The examples of a state machine are no source: Hypothesis makes them and hands them over, one by one.
"""
