"""Real processes as a world: servers started by a command, driven over HTTP, judged by what storage holds.

processes.py  a server as a process group: start, kill, pause, end whatever is left
recorder.py   events of many threads in one order
client.py     one request on the wire, and what its end means
load.py       client threads and what they ask for
reader.py     the kit's own look at a marker directory
nemesis.py    the misfortunes of one round
rounds.py     one round: phases, probe, closing looks, the history
"""
