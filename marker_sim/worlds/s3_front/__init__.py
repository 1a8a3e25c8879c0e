"""The kit's S3: a front before moto that records and hurts, and a probe that asks any S3 whether it keeps its word.

front.py     S3Front: what happens to a request, under the gate's lock and after it
asks.py      what a request asks for; replies.py: what the front answers by itself
draws.py     seeded faults; limits.py: request limits per prefix
store.py     one bucket of moto; http.py: the server underneath
honesty.py   probe_s3: what an endpoint promises, tried
"""

from marker_sim.worlds.s3_front.consistency_probe import ProbedCapabilities, probe_s3
from marker_sim.worlds.s3_front.front import RequestCounts, S3Front

__all__ = ["ProbedCapabilities", "RequestCounts", "S3Front", "probe_s3"]
