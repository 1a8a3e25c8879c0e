"""The reference: direct markers, timeline-server markers and the choice between them, written against the seams only.

store.py      what an implementation is given and what it must offer
choice.py     which mode a storage and options allow
direct.py     one empty file a marker
server.py     the timeline server: one owner of all state, short-lived workers that touch only storage
batches.py    the pure part of the server: what is stored, what is on its way, who waits for it
protocol.py   the server's requests and replies, checked at the edge
client.py     the executor's side of them
files.py      storage operations whose outcome is certain when they return
several.py    the same call for many items, some at a time
"""
