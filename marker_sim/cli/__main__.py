"""`python -m marker_sim.cli` is `marker-sim`."""

import sys

from marker_sim.cli.app import main

sys.exit(main())
