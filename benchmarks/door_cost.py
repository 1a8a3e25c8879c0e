"""What the door costs: microseconds a call of a program that does nothing else, requests a second of a server in Go.

The server answers a request by writing a file of 100 bytes under a temporary name and renaming it, as many programs
store something; its clients are four threads here. `--hudi VERSION` measures a released timeline server too: its
clients are 64 threads that create markers. With the door and without it, in turns; medians. A program in Python makes
each call many times in a row: below the directory, outside of it, and on a number that the filter lets through. Needs
Go, and Java for Hudi. Times are for a machine that does nothing else; the processor time of the kit is the same on any.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

from marker_sim.surroundings.requirements import find_java
from marker_sim.targets.hudi import bundle, start_command
from marker_sim.worlds.door.calls import Decision
from marker_sim.worlds.door.door import Door
from marker_sim.worlds.http.http_client import probe
from marker_sim.worlds.http.servers import lease_port

TURNS, SECONDS, CLIENTS, HUDI_CLIENTS = 3, 3.0, 4, 64
START_S = 60.0
STOP = 6  # Of the kinds of calls below, all but the last.
CALLS = """
import json, os, sys, time
root, outside, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
def took(call):
    began = time.perf_counter()
    for number in range(count):
        call(number)
    return (time.perf_counter() - began) / count * 1e6
os.chdir(root)
inner = os.open("a", os.O_WRONLY | os.O_CREAT)
other = os.open(outside + "/a", os.O_WRONLY | os.O_CREAT)
os.dup2(other, 50)
print(json.dumps({
    "write of 100 bytes": took(lambda n: os.write(inner, bytes(100))),
    "open that creates, and close": took(lambda n: os.close(os.open(f"f{n}", os.O_WRONLY | os.O_CREAT))),
    "rename": took(lambda n: os.rename(f"f{n}", f"g{n}")),
    "unlink": took(lambda n: os.unlink(f"g{n}")),
    "open outside, and close": took(lambda n: os.close(os.open(outside + f"/f{n}", os.O_WRONLY | os.O_CREAT))),
    "write outside, number below 10": took(lambda n: os.write(other, bytes(100))),
    "write outside, any other number": took(lambda n: os.write(50, bytes(100))),
}))
"""
SERVER = """
package main

import ("fmt"; "net"; "net/http"; "os"; "sync/atomic")

func main() {
	var count atomic.Int64
	http.HandleFunc("/", func(reply http.ResponseWriter, request *http.Request) {
		name := fmt.Sprintf("f%d", count.Add(1))
		if err := os.WriteFile(name + ".new", make([]byte, 100), 0644); err != nil { panic(err) }
		if err := os.Rename(name + ".new", name); err != nil { panic(err) }
		reply.Write([]byte("stored"))
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil { panic(err) }
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
"""


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2_000, help="of each kind")
    parser.add_argument("--hudi", metavar="VERSION", help="measure this release as well")
    given = parser.parse_args()
    count: int = given.calls
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        plain, began = _calls(work, count, False), time.process_time()
        behind = _calls(work, count, True)
        used_us = (time.process_time() - began) / (count * STOP) * 1e6
        print(f"processor time of the kit {used_us:.0f} us a call that stops")
        for name in plain:
            print(f"{name:34} {plain[name]:8.1f} us, with the door {behind[name]:8.1f} us")
        (work / "main.go").write_text(SERVER)
        subprocess.run(
            ["go", "build", "-o", "server", "main.go"], cwd=work, check=True, timeout=300, capture_output=True
        )
        _compare("server in Go", lambda door: _of_go(work, door))
        if given.hudi:
            command = start_command(given.hudi, find_java(), bundle(given.hudi).find(print))
            _compare(f"Hudi {given.hudi}", lambda door: _of_hudi(work, command, door))


def _compare(name: str, measure: Callable[[bool], float]) -> None:
    rates: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(TURNS):
        for door, found in rates.items():
            found.append(measure(door))
    for door, found in rates.items():
        words = "with the door" if door else "without"
        print(f"{name}, {words:14} {statistics.median(found):8.0f} requests a second", flush=True)


def _calls(work: Path, count: int, behind: bool) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=work) as root, tempfile.TemporaryDirectory(dir=work) as outside:
        words = [sys.executable, "-I", "-S", "-c", CALLS, root, outside, str(count)]
        if not behind:
            said = subprocess.run(words, check=True, capture_output=True, timeout=300).stdout
        else:
            with Door(Path(root), lambda call: Decision()) as door:
                said, _ = door.start(words, {}, process="program").popen.communicate(timeout=300)
        found: dict[str, float] = json.loads(said)
        return found


def _of_go(work: Path, behind: bool) -> float:
    def load(process: subprocess.Popen[bytes], root: Path) -> float:
        assert process.stdout is not None
        return _load(int(process.stdout.readline()), CLIENTS, lambda client, number: ("GET", "/"))

    return _served(work, [str(work / "server")], behind, load)


def _of_hudi(work: Path, command: str, behind: bool) -> float:
    port, _ = lease_port()

    def load(process: subprocess.Popen[bytes], root: Path) -> float:
        place = urllib.parse.quote(str(root / "t" / ".hoodie" / ".temp" / "1"))

        def request(client: int, number: int) -> tuple[str, str]:
            name = f"p%2Ff{client}-{number}_0-0-0_001.parquet.marker.CREATE"
            return "POST", f"/v1/hoodie/marker/create?markerdirpath={place}&markername={name}"

        _await(port, process)
        _load(port, HUDI_CLIENTS, lambda client, number: request(client + HUDI_CLIENTS, number))  # Warms it up.
        return _load(port, HUDI_CLIENTS, request)

    return _served(work, shlex.split(command.format(port=port, threads=20, interval_ms=50)), behind, load)


def _served(
    work: Path, words: list[str], behind: bool, load: Callable[[subprocess.Popen[bytes], Path], float]
) -> float:
    """Requests a second of a server, of which one runs at a time."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        root = Path(folder)
        if not behind:
            with subprocess.Popen(words, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                try:
                    return load(process, root)
                finally:
                    process.kill()
        with Door(root, lambda call: Decision()) as door:
            started = door.start(words, {}, process="server-1", folder=root, stderr=subprocess.DEVNULL)
            return load(started.popen, root)


def _await(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S
    while wrong := probe(port, "/none/.hoodie/.temp/1"):
        if time.monotonic() > until or process.poll() is not None:
            raise SystemExit(f"the server does not answer within {START_S:g} s: {wrong}")
        time.sleep(0.1)


def _load(port: int, clients: int, request: Callable[[int, int], tuple[str, str]]) -> float:
    over, counts = time.monotonic() + SECONDS, [0] * clients

    def ask(client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        while time.monotonic() < over:
            connection.request(*request(client, counts[client]))
            reply = connection.getresponse()
            assert reply.status == 200 and reply.read() in (b"stored", b"true")
            counts[client] += 1

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


if __name__ == "__main__":
    main()
