"""The simulated world: a greenlet scheduler with a virtual clock, storage models, a wire, and a cluster of actors.

cluster.py         run(plan, system) -> History; clients.py and writes.py: its clients, drivers and executors
scheduler.py       processes, actors, virtual time, steps and the faults that arm at them
fault_injector.py  faults of processes
runtime.py, storage.py, wire.py  the three seams; storage.py has models of S3, a local file system and HDFS
watchdog.py        reports a call that blocks outside the seams
fresh_reader.py    what a fresh instance finds in storage, for every world
steps.py           plans without sites, for worlds that count only steps
"""
