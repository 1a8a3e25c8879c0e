"""The reference markers: direct, timeline server and the choice between them, written against the seams only.

store.py      the contract of a marker implementation
checked.py    checks return values of a foreign implementation against the contract
choice.py     which mode storage and options allow
direct.py     one empty file per marker
server.py     the timeline server: one owner of all state; short-lived workers touch only storage
batches.py    the pure part of the server: stored names, names being flushed, waiting requests
protocol.py   requests and replies of the server, checked on arrival
client.py     the executor's side of the protocol
files.py      storage operations whose outcome is certain when they return
several.py    the same call for many items, a few at a time
"""
