"""How long a Hudi timeline server takes to start: as by hand, and with its launcher compiled and its classes archived.

    python benchmarks/java_start.py [--version 1.2.0] [--storage local] [--times 5]

The two take turns; the ratio of the medians is what counts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time

from marker_sim.targets.hudi import VERSIONS, find_jars, start_command
from marker_sim.targets.jvm.java_start import quick_start
from marker_sim.worlds.http.http_client import probe
from marker_sim.worlds.http.servers import Command, lease_port


def starts_in(command: str) -> float:
    """Seconds until a server answers."""
    with tempfile.TemporaryDirectory() as folder:
        port, _ = lease_port()
        values = {"port": str(port), "threads": "2", "interval_ms": "50", "storage": folder}
        began = time.monotonic()
        server = subprocess.Popen(
            Command(text=command).arguments(values), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            while probe(port, f"{folder}/t/.hoodie/.temp/001"):
                time.sleep(0.02)
            return time.monotonic() - began
        finally:
            server.kill()
            server.wait()


def main() -> None:
    """Both starts, in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="1.2.0", choices=VERSIONS)
    parser.add_argument("--storage", default="local", choices=("local", "s3"))
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    plain = start_command(given.version, *find_jars(given.version, "hudi", given.storage, print, None))
    quick = quick_start(plain, print)
    taken = [(starts_in(plain), starts_in(quick)) for _ in range(given.times)]
    medians = [statistics.median(column) for column in zip(*taken, strict=True)]
    print(f"by hand {medians[0]:.2f} s, quick {medians[1]:.2f} s, ratio {medians[0] / medians[1]:.1f}")


if __name__ == "__main__":
    main()
