"""Faults on real TCP connections, by a toxiproxy server between client and server.

install.py    finds or builds the toxiproxy program
toxiproxy.py  one toxiproxy process, its proxies and their toxics
faults.py     the closed list of wire faults: drawn from a seed, applied and recorded
evidence.py   how the fault on a connection shows in an exchange
"""
