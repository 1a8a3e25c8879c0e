"""The reference's timeline server as a process: the code that the simulator runs, behind Hudi's HTTP interface.

    uvicorn ─ connections.py ─► app.py ─ a greenlet a request ─► markers.protocol.handle ─► markers.server
                                                                      │ seams
                                              runtime.py (event loop) ┴ storing.py ─► lanes.py (threads) ─► storages

server.py       settings, start and graceful stop
connections.py  what slow, half-open and oversized clients may not do
app.py          Hudi's paths, methods, parameters and replies
query.py        the query string, decoded exactly once
bases.py        which marker directories are served, and where they are stored
runtime.py      the Runtime seam on an event loop: actors are greenlets on one thread
storing.py      the Storage seam and host locks for such actors: the calls themselves are made by threads
lanes.py        a bounded number of threads, shared fairly between marker directories
"""
