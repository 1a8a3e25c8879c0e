"""Faults on real TCP connections: a toxiproxy server between whoever asks and whoever answers.

install.py    where the server program is, and how it gets there
toxiproxy.py  one server process, its wires and the toxics on them
faults.py     the closed list of wire faults, drawn from a seed, put on a wire and recorded
evidence.py   what an exchange over a wire shows of the fault that is on it
"""
