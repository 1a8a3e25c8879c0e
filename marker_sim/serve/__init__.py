"""The reference's timeline server as a process: the code that the simulator runs, behind Hudi's HTTP interface.

    uvicorn ─ connections.py ─► app.py ─ a greenlet per request, but for creates ─► markers.protocol ─► markers.server
                                                                                        │ seams
                                                                              runtime.py

server.py       settings, start and graceful stop
connections.py  limits for slow, half-open and oversized clients
app.py          Hudi's paths, methods, parameters and replies; creates of one turn of the loop, queued together
bases.py        the marker directories that are served, and their storage
runtime.py      the Runtime and Storage seams on an event loop: actors are greenlets; threads for calls, shared fairly
"""
