"""Run as a program: the template, which is told where the kit's coordinator is."""

from __future__ import annotations

import sys

from marker_sim.worlds.processes.roles import prepare, run_child
from marker_sim.worlds.processes.template import serve

serve(sys.argv[1], run_child, prepare)
