"""What the door costs: microseconds a call of a program that does nothing else, requests a second of a server in Go.

The server answers a request by writing a file of 100 bytes under a temporary name and renaming it, as many programs
store something; its clients are four threads here. With the door and without it, in turns; medians. A program in Python
makes each call many times in a row: below the directory, outside of it, and on a number that the filter lets through.
Needs Go. Times are for a machine that does nothing else; the processor time of the kit is the same on any.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from marker_sim.worlds.door.calls import Decision
from marker_sim.worlds.door.door import Door

TURNS, SECONDS, CLIENTS = 3, 3.0, 4
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
    count = parser.parse_args().calls
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
        rates: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(TURNS):
            for door, found in rates.items():
                found.append(_requests(work, door))
        for door, found in rates.items():
            words = "with the door" if door else "without"
            print(f"server in Go, {words:14} {statistics.median(found):8.0f} requests a second")


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


def _requests(work: Path, behind: bool) -> float:
    """Requests a second of a server, of which one runs at a time."""
    with tempfile.TemporaryDirectory(dir=work) as root:
        words = [str(work / "server")]
        if not behind:
            with subprocess.Popen(words, cwd=root, stdout=subprocess.PIPE) as process:
                try:
                    return _load(process)
                finally:
                    process.kill()
        with Door(Path(root), lambda call: Decision()) as door:
            return _load(door.start(words, {}, process="server-1", folder=Path(root)).popen)


def _load(process: subprocess.Popen[bytes]) -> float:
    assert process.stdout is not None
    port, over, counts = int(process.stdout.readline()), time.monotonic() + SECONDS, [0] * CLIENTS

    def ask(client: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        while time.monotonic() < over:
            connection.request("GET", "/")
            assert connection.getresponse().read() == b"stored"
            counts[client] += 1

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / SECONDS


if __name__ == "__main__":
    main()
