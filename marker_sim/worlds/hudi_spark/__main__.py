"""`python -m marker_sim.worlds.hudi_spark SPEC`: the program of a driver."""

import sys

from marker_sim.worlds.hudi_spark.job import main

if __name__ == "__main__":
    main(sys.argv[1])
