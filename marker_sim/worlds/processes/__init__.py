"""Plans with real processes: executors, a driver and a server that can be killed.

    kit process                                     a child, forked from the template
    cluster.py      the cluster of worlds.cluster   roles.py                what a child does
                    and what children ask it        children.py             its seams, faults at its own steps
    host.py         what the cluster stands on      driver_process.py       the driver
    fork_server.py  starts and ends children        server_process.py       the timeline server
    faults.py       faults at calls on storage      seams.py                Storage and Runtime, every call a step
    storages.py     files or a bucket               wire.py                 HTTP to the timeline server
    coordinator.py  answers the children  ◄───────► coordinator_client.py   sends events and questions to the kit

template.py    the process that children are forked from
steps.py       counts seam calls
parquet.py     the format of the rows

The plans, stage, write client, markers and judges are those of the simulated world. A fault arms at its actor's n-th
seam call here too, so "driver, step 17" is the same place in both worlds as long as nothing races.
"""
