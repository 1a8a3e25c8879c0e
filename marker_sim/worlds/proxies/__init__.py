"""Faults on real TCP connections, by a toxiproxy server between client and server.

install.py    finds or builds the toxiproxy program
toxiproxy.py  one toxiproxy process, its proxies and their toxics
faults.py     the wire faults of faults/table.py: applied, shown by an exchange, and recorded
"""
