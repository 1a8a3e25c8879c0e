"""A process of a driver's session: `python -m marker_sim.worlds.spark jobs SPEC`, `hudi SPEC` or `server SPEC NAME`."""

import sys

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hudi", spec]:
            from marker_sim.worlds.spark.hudi.job import drive as drive_hudi  # Which is not to load the kit.

            drive_hudi(spec)
        case ["jobs", spec]:
            from marker_sim.worlds.spark.driver import drive

            drive(spec)
        case ["server", spec, name]:
            from marker_sim.worlds.spark.driver import embed

            embed(spec, name)
