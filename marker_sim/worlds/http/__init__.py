"""Real processes as a world: servers started by a command, driven over HTTP, judged by what storage holds.

processes.py  a server as a process group: start, kill, pause, end whatever is left
recorder.py   events of many threads in one order
client.py     one request on the wire, and what its end means
load.py       client threads and what they ask for
world.py      the storage under a round, as a protocol
              local_world.py a directory; s3_world.py the kit's S3 front; site_world.py somebody's endpoint
probed.py     what follows from what the honesty probe found of an object store
reader.py     the kit's own look at a marker directory: local files; object_reader.py: objects; seen.py: telling it
nemesis.py    the misfortunes of servers
kinds.py      what happens in each kind of round; wire_rounds.py, storage_wire.py: those with proxies
rounds.py     one round: phases, probe, closing looks, the history
"""
