"""The reference's timeline server as a process: the code that the simulator runs, behind Hudi's HTTP interface.

    uvicorn ─ connections.py ─► app.py ─ creates.py, or a greenlet per request ─► markers.protocol ─► markers.server
                                                                                        │ seams
                                                          runtime.py (event loop) ┴ storing.py ─► fair_thread_pool.py

server.py            settings, start and graceful stop
connections.py       limits for slow, half-open and oversized clients
app.py               Hudi's paths, methods, parameters and replies
creates.py           creates of one turn of the loop, queued together
query.py             the query string, decoded exactly once
bases.py             the marker directories that are served, and their storage
runtime.py           the Runtime seam on an event loop: actors are greenlets on one thread
storing.py           the Storage seam and host locks for these actors; threads make the calls
fair_thread_pool.py  a bounded number of threads, shared fairly between marker directories
"""
