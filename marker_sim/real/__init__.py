"""Real processes as a world: servers started by a command, driven over HTTP, judged by what storage holds.

processes.py  a server as a process group: start, kill, pause, end whatever is left
recorder.py   events of many threads in one order
client.py     one request on the wire, and what its end means
load.py       client threads and what they ask for
world.py      the storage under a round, as a protocol: local_world.py, s3_world.py
reader.py     the kit's own look at a marker directory: local files; object_reader.py: objects; seen.py: telling it
nemesis.py    the misfortunes of servers
kinds.py      what happens in each kind of round
rounds.py     one round: phases, probe, closing looks, the history
"""
