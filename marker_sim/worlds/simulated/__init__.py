"""The simulated world: a greenlet scheduler with a virtual clock, storage models, a wire, and the cluster on top.

scheduler.py    processes, actors, virtual time, steps and the faults that arm at them
runtime.py      the Runtime seam: mailboxes, locks
storage.py      the Storage seam over models of S3, a local file system and HDFS
wire.py         the Wire seam
environment.py  one process from inside: its seams and what its actors do
host.py         what the cluster of worlds.cluster asks of this world
cluster.py      run(plan, system) -> History, what this world cannot do, a plan keyed by steps alone
fresh_reader.py what a fresh instance finds in storage, for every world
watchdog.py     what hangs outside the seams
"""
