"""Each defect shown by one fault at one system call, and what comes of it at the faulty and at the correct server.

    PYTHONPATH=. python -m scenarios.faulty_servers.demo [NAME ...]

Needs strace, prlimit and Go, and nothing of the kit. Ends with 1 when a defect does not show, or a correct server
has it.
"""

from __future__ import annotations

import http.client
import json
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

from scenarios.faulty_servers.starts import SERVERS, build, command

START_S = 20.0
POLL_S = 0.05
A, B, C = (f"p/{letter}_0-0-0_001.parquet.marker.CREATE" for letter in "abc")
LONG = f"p/{'l' * 200}.parquet.marker.CREATE"
DIE = "error=EIO:signal=KILL"


class Ground:
    """A storage with one marker directory, and the server that runs on it."""

    def __init__(self, name: str, program: Path, storage: Path) -> None:
        self.name, self.program, self.storage = name, program, storage
        self.directory = storage / "t" / ".hoodie" / ".temp" / "001"
        self.running: subprocess.Popen[bytes] | None = None
        self.connection = http.client.HTTPConnection("127.0.0.1")

    def start(self, *wrapped: str) -> None:
        """Kill the server that runs, if one does, and start another one, below a command."""
        self.stop()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        # One connection, so one thread of the server in Python: strace counts the calls of each thread.
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
        text = command(self.name, self.program).format(port=port, storage=self.storage, threads=1)
        with (self.storage / "log").open("ab") as log:
            self.running = subprocess.Popen([*wrapped, *shlex.split(text)], stdout=log, stderr=log)
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(POLL_S)
        raise TimeoutError(f"{text} does not listen after {START_S:g} s")

    def fault(self, calls: str, what: str, path: str = "") -> None:
        """Start it so that `what` happens to the system calls on a file of the directory, "" for all files."""
        where = ["-P", str(self.directory / path)] if path else []
        self.start(
            "strace", "-f", "-qq", "-o", "/dev/null", *where, "-e", f"trace={calls}", "-e", f"inject={calls}:{what}"
        )

    def stop(self) -> None:
        """Kill it, with a strace above it."""
        if self.running is not None:
            for child in subprocess.run(
                ["ps", "-o", "pid=", "--ppid", str(self.running.pid)], capture_output=True, text=True, check=False
            ).stdout.split():
                subprocess.run(["kill", "-9", child], check=False, capture_output=True)
            self.running.kill()
            self.running.wait()
            self.running = None

    def ask(self, method: str, route: str, name: str = "") -> object:
        """What was answered, a status that is not 200, or "nothing"."""
        query = urlencode({"markerdirpath": str(self.directory)} | ({"markername": name} if name else {}))
        try:
            self.connection.request(method, f"/v1/hoodie/marker{route}?{query}")
            reply = self.connection.getresponse()
            body = reply.read()
        except (OSError, http.client.HTTPException):
            return "nothing"
        return json.loads(body) if reply.status == 200 else reply.status

    def create(self, name: str) -> object:
        """The answer of a create."""
        return self.ask("POST", "/create", name)

    def names(self) -> list[str]:
        """The names that storage has."""
        files = sorted(self.directory.glob("MARKERS[0-9]*"))
        return [line for file in files for line in file.read_text().split("\n")[:-1]]


def type_file_missing(ground: Ground) -> bool:
    """A marker file without the type file."""
    there = {path.name for path in ground.directory.iterdir()} if ground.directory.exists() else set()
    return "MARKERS0" in there and "MARKERS.type" not in there


def marker_file_first(ground: Ground) -> bool:
    """It dies at its second rename."""
    ground.fault("rename", f"{DIE}:when=2")
    ground.create(A)
    return type_file_missing(ground)


def type_with_new_directory(ground: Ground) -> bool:
    """It dies at its first rename, and starts again."""
    ground.fault("rename", f"{DIE}:when=1")
    ground.create(A)
    ground.start()
    ground.create(A)
    return type_file_missing(ground)


def temporary_adopted(ground: Ground) -> bool:
    """It dies when it writes the second content of a file."""
    ground.fault("write", f"{DIE}:when=2", ".MARKERS0.tmp")
    answer = ground.create(A)
    ground.create(B)
    ground.start()
    ground.ask("GET", "/all")
    return answer is True and A not in ground.names()


def removed_before_rename(ground: Ground) -> bool:
    """It dies at its third rename, the second one of the marker file."""
    ground.fault("rename", f"{DIE}:when=3")
    answer = ground.create(A)
    ground.create(B)
    return answer is True and A not in ground.names()


def answered_before_write(ground: Ground) -> bool:
    """The marker file cannot be synced."""
    ground.fault("fsync", "error=EIO", ".MARKERS0.tmp")
    answer = ground.create(A)
    time.sleep(START_S / 20)
    return answer is True and A not in ground.names()


def listing_error_is_empty(ground: Ground) -> bool:
    """The directory cannot be listed once, before the second create."""
    ground.fault("getdents64", "error=EIO:when=1", ".")
    answer = ground.create(A)
    ground.create(B)
    return answer is True and A not in ground.names()


def second_write_unchecked(ground: Ground) -> bool:
    """The file may not become longer than a part of the second line."""
    ground.start("prlimit", "--fsize=150")
    ground.create(A)
    return ground.create(LONG) is True and LONG not in ground.names()


def cut_line_is_a_name(ground: Ground) -> bool:
    """A server that died in a write has left a part of a line."""
    ground.directory.mkdir(parents=True)
    (ground.directory / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (ground.directory / "MARKERS0").write_text(f"{A}\n{B[:9]}")
    ground.start()
    listed = ground.ask("GET", "/all")
    return listed != [A] or (ground.create(C) is True and C not in ground.names())


def remembered_before_write(ground: Ground) -> bool:
    """A write fails."""
    ground.fault("pwrite64", "error=ENOSPC", "MARKERS0")
    ground.create(B)
    return ground.create(B) is False and B not in ground.names()


def cut_line_continued(ground: Ground) -> bool:
    """The file may not become longer for a while."""
    ground.start("prlimit", "--fsize=150:unlimited")
    ground.create(A)
    ground.create(LONG)
    assert ground.running is not None
    subprocess.run(["prlimit", f"--pid={ground.running.pid}", "--fsize=unlimited:unlimited"], check=True)
    return ground.create(B) is True and B not in ground.names()


def deletion_error_logged(ground: Ground) -> bool:
    """Nothing can be removed."""
    ground.fault("unlinkat", "error=EIO")
    ground.create(A)
    return ground.ask("POST", "/dir/delete") is True and A in ground.names()


def unreadable_file_skipped(ground: Ground) -> bool:
    """After a restart the marker file cannot be opened."""
    ground.start()
    answer = ground.create(A)
    ground.fault("openat", "error=EIO", "MARKERS0")
    return answer is True and ground.ask("GET", "/all") == []


def shown(show: Callable[[Ground], bool], name: str, program: Path) -> bool:
    """Whether a server has it."""
    with tempfile.TemporaryDirectory() as storage:
        ground = Ground(name, program, Path(storage))
        try:
            return show(ground)
        finally:
            ground.stop()


def main() -> int:
    """Show those that were asked for."""
    with tempfile.TemporaryDirectory() as out:
        program = build(Path(out))
        wrong = 0
        for name, (language, defect) in SERVERS.items():
            if defect and language != "remembering" and (not sys.argv[1:] or name in sys.argv[1:]):
                show: Callable[[Ground], bool] = globals()[name.replace("-", "_")]
                faulty, correct = shown(show, name, program), shown(show, f"correct-{language}", program)
                wrong += not faulty or correct
                print(
                    f"{name:25} {'shown' if faulty else 'NOT SHOWN'}, correct server {'HAS IT' if correct else 'clean'}"
                )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
