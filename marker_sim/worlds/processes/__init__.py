"""Plans with real processes: executors, a driver and a server that can be killed.

    kit process                                     a child, forked from the template (__main__.py)
    cluster.py      the cluster of worlds.cluster   children.py             the work of a child, and faults at its steps
                    and requests of children        seams.py                Storage, Runtime and Wire, every call a step
    host.py         the cluster's interface to processes
    fork_server.py  starts and ends children
    faults.py       faults at calls on storage
    storages.py     files or a bucket

coordinator.py  both sides of the requests of children to the kit
parquet.py      the format of the rows

The plans, stage, write client, markers and judges are those of the simulated world. A fault arms at its actor's n-th
seam call here too, so "driver, step 17" is the same place in both worlds as long as nothing races.
"""
