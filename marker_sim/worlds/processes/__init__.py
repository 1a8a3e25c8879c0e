"""The write path as real processes: a plan run with executors, a driver and a server that can really be killed.

    kit process                               a child, forked from the template
    cluster.py  plays the plan with           children.py   what every child has, and what an executor does
      writes.py, clients.py, servers.py       driver.py     the driver
    nemesis.py  hurts who is due              operations.py a client of the marker store alone
    lives.py    births and deaths             server.py     the timeline server
    worlds.py   a directory or a bucket       seams.py      Storage and Runtime, every call a step
    hub.py      answers the children  ◄─────► link.py       events, effects and steps on their way to the kit
                                              wire.py       HTTP to the timeline server
    template.py is the process that children are forked from; steps.py counts; parquet.py is the format of the rows;
    closing.py reads what is stored when a run is over;
    walk.py goes through every crash point of a plan

The same plans as in the simulated world, the same stage, write client, markers and judges. A fault arms at its actor's
n-th seam call here too, so "driver, step 17" is the same place in both worlds as long as nothing races.
"""
