"""Where a plan runs and becomes a history.

cluster/        clients, servers, a driver and its executors under faults, once for the next two
host.py         the interface between that cluster and its host
simulated/      one process, virtual time
processes/      the same plans, every actor a process that can be killed
http/           a foreign timeline server, started by a command, by plans of requests and faults
spark/          the write path as jobs of a Spark application, the reference's and that of a released Hudi
s3_front/       the kit's S3: it records storage requests and makes them fail
door/           storage calls of unmodified commands below a directory, each stopped, done or refused by the kit
disk.py         what below a door was synced, and what a loss of power leaves
proxies/        toxiproxy on the connections of clients, servers and storage
interceptor.py  every storage call passes it, and its effect is recorded before any process sees the reply
recorder.py     events of many threads in one order
played.py       a run in real time that is over
"""
