"""Plans against foreign servers: started by a command, driven over HTTP, judged by what is stored.

planned_run.py       one plan; plan_faults.py injects its faults, plan_wires.py those of connections
probes.py            the kit's own requests and reads of storage
servers.py           a server as a process group: start, kill, pause, end all of it
starvation.py        how long a server waited for a processor or for the kit, or was idle
fault_injector.py    faults of server processes
clients.py           a request as an operation of the history, and a plan's clients
http_client.py       one request, in several forms or broken off, and the meaning of its result
world.py             the storage of runs, and how it is read: local_world.py a directory, s3_worlds.py object stores
"""
