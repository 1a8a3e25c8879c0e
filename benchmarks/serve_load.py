"""Acks a second and latency of `marker-sim serve` beside the real Hudi timeline server: same load, same run, in turns.

wrk asks for markers with unique names, as fast as its connections are answered, in a fresh marker directory for each
slice, on tmpfs or on the disk of --on; the servers take turns. Hudi's JVM runs with its default compiler and 2 GB (the
kit's own runs use less). After each slice storage must hold every name that was asked for and no other: a connection
waits for its answer, so the names without an answer are at most as many as there are connections, and a server flushes
these as well.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NamedTuple

import psutil

from marker_sim.names import stored_names
from marker_sim.surroundings.requirements import find_java
from marker_sim.targets.hudi import bundle, start_command

START_TIMEOUT_S = 60.0
SETTLE_TIMEOUT_S = 20.0
SCRIPT = """
local threads = {}
function setup(thread)
  thread:set("id", #threads)
  table.insert(threads, thread)
end
function init(arguments)
  asked, fine, created = 0, 0, 0
  starts = {}
  for _, argument in ipairs(arguments) do
    table.insert(starts, argument .. "&markername=p%2F" .. id .. "-")
  end
end
function request()
  asked = asked + 1
  return wrk.format("POST", starts[asked % #starts + 1] .. asked .. ".parquet.marker.CREATE")
end
function response(status, headers, body)
  if status == 200 then fine = fine + 1 end
  if body == "true" then created = created + 1 end
end
function done(summary, latency, requests)
  local asked, fine, created, each = 0, 0, 0, {}
  for _, thread in ipairs(threads) do
    asked, fine, created = asked + thread:get("asked"), fine + thread:get("fine"), created + thread:get("created")
    table.insert(each, thread:get("asked"))
  end
  io.write(string.format(
    'FIGURES {"asked": [%s], "fine": %d, "created": %d, "seconds": %.3f, "errors": %d,' ..
    ' "ms": [%.1f, %.1f, %.1f, %.1f]}\\n',
    table.concat(each, ","), fine, created, summary.duration / 1e6,
    summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
    latency:percentile(50) / 1e3, latency:percentile(90) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
"""


class Server(NamedTuple):
    """A running server."""

    name: str
    process: subprocess.Popen[bytes]
    url: str

    def cpu_s(self) -> float:
        """Seconds of processor time so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def rss_mb(self) -> float:
        """Its largest resident size so far."""
        return self._figure("status", "VmHWM:")

    def pss_mb(self) -> float:
        """What it occupies now; of a shared page its part."""
        return self._figure("smaps_rollup", "\nPss:")

    def _figure(self, file: str, label: str) -> float:
        return int(Path(f"/proc/{self.process.pid}/{file}").read_text().partition(label)[2].split()[0]) / 1024


class Slice(NamedTuple):
    """What one turn of one server came to. missing: names asked for that are not stored; strange: the contrary."""

    acks: int
    acks_per_s: float
    ms: tuple[float, ...]
    bad: int
    missing: int
    strange: int
    cpu_s: float
    pss_mb: float


def start(name: str, command: str, work: Path, root: Path) -> Server:
    """Start a server and wait until it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = shlex.split(command.format(port=port, threads=20, interval_ms=50))
    with (work / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    server = Server(name, process, f"http://127.0.0.1:{port}/v1/hoodie/marker")
    query = urllib.parse.urlencode({"markerdirpath": str(root / "t" / ".hoodie" / ".temp" / "0")})
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.url}/dir/exists?{query}", timeout=5.0):
                return server
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise SystemExit(f"{name} does not answer: {(work / f'{name}.log').read_text()[-2000:]}")


def load(server: Server, directories: list[Path], script: Path, connections: int, seconds: int) -> Slice:
    """One turn: wrk against fresh directories, then a look at storage."""
    queries = [
        urllib.parse.urlencode({"markerdirpath": str(directory), "basepath": str(directory.parents[2])})
        for directory in directories
    ]
    before_s = server.cpu_s()
    words = ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script), server.url]
    said = subprocess.run(
        [*words, "--", *(f"/v1/hoodie/marker/create?{query}" for query in queries)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    ).stdout
    figures = json.loads(said.partition("FIGURES ")[2].splitlines()[0])
    cpu_s = server.cpu_s() - before_s
    missing = strange = 0
    for place, directory in enumerate(directories):
        asked = {
            f"p/{thread}-{number}.parquet.marker.CREATE"
            for thread, count in enumerate(figures["asked"])
            for number in range(1, count + 1)
            if number % len(directories) == place
        }
        stored = settled(directory, asked)
        missing += len(asked - stored)
        strange += len(stored - asked)
    unanswered = sum(figures["asked"]) - figures["fine"]
    return Slice(
        figures["created"],
        figures["created"] / figures["seconds"],
        tuple(figures["ms"]),
        bad=figures["errors"] + figures["fine"] - figures["created"] + max(0, missing - min(unanswered, connections)),
        missing=missing,
        strange=strange,
        cpu_s=cpu_s,
        pss_mb=server.pss_mb(),
    )


def settled(directory: Path, asked: set[str]) -> frozenset[str]:
    """The stored names once all that were asked for are there, or have had time to come."""
    until = time.monotonic() + SETTLE_TIMEOUT_S / 10
    while True:
        files = {str(path): path.read_bytes() for path in directory.iterdir() if path.is_file()}
        stored = stored_names(str(directory), files)
        if asked <= stored or time.monotonic() > until:
            return stored
        time.sleep(0.1)


def report(name: str, slices: list[Slice]) -> float:
    """Print the figures of one server; the median of its acks a second."""
    acks = [s.acks_per_s for s in slices]
    ms = [statistics.median(s.ms[n] for s in slices) for n in range(3)] + [max(s.ms[3] for s in slices)]
    each_us = 1e6 * sum(s.cpu_s for s in slices) / max(1, sum(s.acks for s in slices))
    print(
        f"  {name:12} {statistics.median(acks):8.0f} acks/s ({min(acks):.0f} to {max(acks):.0f})"
        f"  p50 {ms[0]:6.1f}  p90 {ms[1]:6.1f}  p99 {ms[2]:6.1f}  max {ms[3]:7.1f} ms"
        f"  {sum(s.cpu_s for s in slices):6.2f} CPU s, {each_us:.0f} us an ack"
        f"  bad {sum(s.bad for s in slices)} missing {sum(s.missing for s in slices)}"
        f" strange {sum(s.strange for s in slices)}"
    )
    return statistics.median(acks)


def measure(servers: list[Server], root: Path, script: Path, connections: int, given: argparse.Namespace) -> bool:
    """All turns with a number of connections; whether storage was right after each."""
    results: dict[str, list[Slice]] = {server.name: [] for server in servers}
    for number in range(given.slices + 1):
        for server in servers:
            temporary = root / "t" / ".hoodie" / ".temp"
            temporary.mkdir(parents=True, exist_ok=True)
            places = [temporary / f"{server.name}-{connections}-{number}-{d}" for d in range(given.directories)]
            # The first turn warms up, above all the JVM, and does not count.
            result = load(server, places, script, connections, given.seconds if number else given.warm_up)
            results[server.name] += [result] if number else []
            for place in places:
                shutil.rmtree(place)
    print(
        f"{connections} connections, {given.directories} marker directories,"
        f" {given.slices} slices of {given.seconds} s a server"
    )
    medians = {name: report(name, found) for name, found in results.items()}
    *ours, other = servers
    for server in ours:
        pairs = [a.acks_per_s / b.acks_per_s for a, b in zip(results[server.name], results[other.name], strict=True)]
        print(
            f"  {server.name} to {other.name}: ratio of medians {medians[server.name] / medians[other.name]:.3f},"
            f" slice by slice {', '.join(f'{p:.2f}' for p in pairs)}"
        )
    for server in servers:
        pss_mb = max(found.pss_mb for found in results[server.name])
        print(
            f"  {server.name}: peak {server.rss_mb():.0f} MB resident so far,"
            f" {pss_mb:.0f} MB proportional after a slice, {server.cpu_s():.1f} CPU s so far"
        )
    return all(not s.bad and not s.strange for found in results.values() for s in found)


def main() -> None:
    """Parse the command line and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connections", type=int, nargs="+", default=[64, 512, 2000])
    parser.add_argument("--slices", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="of one slice")
    parser.add_argument("--warm-up", type=int, default=10, help="seconds of the first turn, which does not count")
    parser.add_argument("--version", default="1.0.2", help="of Hudi")
    parser.add_argument("--directories", type=int, default=1, help="asked in turn by each thread of wrk")
    parser.add_argument("--only-ours", action="store_true")
    parser.add_argument("--fsync", action="store_true", help="beside it also `marker-sim serve --fsync`")
    parser.add_argument("--on", default="/dev/shm", metavar="DIRECTORY", help="of markers; on tmpfs an fsync is free")
    arguments = parser.parse_args()
    if shutil.which("wrk") is None:
        sys.exit("benchmarks.serve_load needs the program wrk (Debian: apt install wrk) on PATH")
    with tempfile.TemporaryDirectory(dir=arguments.on, prefix="serve-load-") as temporary:
        work = Path(temporary)
        root = work / "lake"
        root.mkdir()
        script = work / "names.lua"
        script.write_text(SCRIPT)
        ours = f"{shlex.quote(sys.executable)} -m marker_sim serve --port {{port}} --base {root}"
        ours += " --batch-threads {threads} --batch-interval-ms {interval_ms}"
        commands = {"with --fsync": f"{ours} --fsync"} if arguments.fsync else {}
        commands["marker-sim"] = ours
        if not arguments.only_ours:
            hudi = start_command(arguments.version, find_java(), bundle(arguments.version).find(print))
            name = f"hudi-{arguments.version}"
            commands[name] = hudi.replace(" -XX:TieredStopAtLevel=1", "").replace("-Xmx512m", "-Xmx2g")
        servers: list[Server] = []
        try:
            servers += [start(name, command, work, root) for name, command in commands.items()]
            fine = [measure(servers, root, script, count, arguments) for count in arguments.connections]
        finally:
            for server in servers:
                os.killpg(server.process.pid, signal.SIGKILL)
                server.process.wait()
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
