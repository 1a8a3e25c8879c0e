"""Plans with real processes: executors, a driver and a server that can be killed.

    kit process                                    a child, forked from the template
    cluster.py      plays the plan with            children.py             what every child has; executors
      writes.py, clients.py, servers.py            driver_process.py       the driver
    fault_injector.py  injects the faults          client_process.py       a client of the marker store alone
    fork_server.py  starts and ends children       server_process.py       the timeline server
    storages.py     a directory or a bucket        seams.py                Storage and Runtime, every call a step
    coordinator.py  answers the children  ◄──────► coordinator_client.py   sends events, effects and steps to the kit
                                                   wire.py                 HTTP to the timeline server

template.py    the process that children are forked from
steps.py       counts seam calls
parquet.py     the format of the rows
closing.py     reads what is stored when a run is over
crash_walk.py  every crash point of a plan

The plans, stage, write client, markers and judges are those of the simulated world. A fault arms at its actor's n-th
seam call here too, so "driver, step 17" is the same place in both worlds as long as nothing races.
"""
