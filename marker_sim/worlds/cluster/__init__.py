"""The cluster that the simulated world and real processes share: processes of one run, on a host.

run.py          the phases of a run, the last of which reads what is stored
earlier_life.py what tables hold before a run
settings.py     what follows from a plan, a system and the storage; the header of a history
store.py        clients of the marker store alone, and timeline servers
writes.py       the driver and its executors
faults.py       what befalls processes, and what follows from a death
environment.py  one process from inside: what its code works with
work.py         what clients, executors and drivers do
recording.py    calls as they enter the history
"""
