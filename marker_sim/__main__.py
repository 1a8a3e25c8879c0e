"""`python -m marker_sim` is `marker-sim`."""

import sys

from marker_sim.cli import main

sys.exit(main())
