"""Plans against foreign servers: started by a command, driven over HTTP, judged by what is stored.

planned_run.py       one plan: plan_faults.py its faults, plan_wires.py those of connections
probes.py            what the kit asks and looks at itself
servers.py           a server as a process group: start, kill, pause, end all of it
starvation.py        how long it waited for a processor, or for the kit, or did nothing
fault_injector.py    faults of server processes
clients.py           a request as an operation of the history, and a plan's clients
http_client.py       one request, in several ways or broken off, and what its result means
world.py             the storage of runs, and how it is read: local_world.py a directory, s3_worlds.py object stores
"""
