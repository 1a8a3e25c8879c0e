"""A driver: `python -m marker_sim.worlds.spark jobs SPEC` of the reference's jobs, `hudi SPEC` of Hudi's."""

import sys

if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hudi", spec]:
            from marker_sim.worlds.spark.hudi.job import drive as drive_hudi  # Which is not to load the kit.

            drive_hudi(spec)
        case ["jobs", spec]:
            from marker_sim.worlds.spark.driver import drive

            drive(spec)
