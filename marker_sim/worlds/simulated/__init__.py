"""The simulated world: a greenlet scheduler with a virtual clock, storage models, a wire, and one cluster of actors.

scheduler.py  processes, actors, virtual time, steps and the faults that arm at them
runtime.py    the Runtime seam: mailboxes, locks
storage.py    the Storage seam over models of S3, a local file system and HDFS
wire.py       the Wire seam
cluster.py    run(plan, system) -> History
"""
