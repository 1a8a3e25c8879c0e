"""The kit's S3: a front before moto that records and fails requests, and a probe of any S3 endpoint's consistency.

front.py              S3Front: what happens to a request, in the interceptor and after it; request limits per prefix
requests.py           parses a request; the replies that are not moto's
store.py              one bucket of moto; http_server.py: the server underneath
consistency_probe.py  probe_s3: tests what an endpoint promises
"""

from marker_sim.worlds.s3_front.consistency_probe import ProbedCapabilities, probe_s3
from marker_sim.worlds.s3_front.front import READER, SECRET, S3Front
from marker_sim.worlds.s3_front.store import BUCKET, REGION

__all__ = ["BUCKET", "READER", "REGION", "SECRET", "ProbedCapabilities", "S3Front", "probe_s3"]
