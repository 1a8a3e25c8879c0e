"""The timeline server that a driver starts: a process of the driver's session, so that it dies with it."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

from marker_sim.worlds.processes.children import Child
from marker_sim.worlds.processes.server_process import serve
from marker_sim.worlds.spark.plans import SERVER


def embed(spec_path: str, name: str) -> None:
    """Serve markers under a name until the end of the process."""
    spec = pickle.loads(Path(spec_path).read_bytes())
    child = Child({**spec, "process": name, "role": SERVER})
    child.link.ask("hello", SERVER, os.getpid(), "")
    serve(child, spec["storage"])
