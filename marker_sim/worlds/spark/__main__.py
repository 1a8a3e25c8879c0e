"""A process of a Spark driver's session: `python -m marker_sim.worlds.spark driver SPEC` or `server SPEC NAME`."""

import sys

from marker_sim.worlds.spark.driver import drive
from marker_sim.worlds.spark.server import embed

match sys.argv[1:]:
    case ["driver", spec]:
        drive(spec)
    case ["server", spec, name]:
        embed(spec, name)
