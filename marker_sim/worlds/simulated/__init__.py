"""The simulated world: a greenlet scheduler with a virtual clock, storage models, a wire, and the cluster on top.

scheduler.py    processes, actors, virtual time, steps and the faults that arm at them
runtime.py      the Runtime seam: mailboxes, locks
storage.py      the Storage seam over models of S3, a local file system and HDFS
wire.py         the Wire seam
environment.py  one process from inside: its seams and the work of its actors
host.py         implements the interface of worlds.cluster to its world
cluster.py      run(plan, system) -> History, the faults that cannot happen here, and plans keyed by steps alone
fresh_reader.py lists foreign markers by a fresh instance of the system, for every world
watchdog.py     ends runs that block outside the seams
"""
