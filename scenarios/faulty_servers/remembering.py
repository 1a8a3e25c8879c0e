"""A timeline server that appends to one file and remembers it, and the same with one defect (`--defect`, README.md).

    python remembering.py --port {port} --dir {storage} --threads {threads} --workdir {workdir} [--defect NAME]

It has its storage alone. A file is remembered while it is open and still the one at its path; else it is read again,
and what follows its last line is cut off.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from threading import RLock

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.correct_servers.hudi_files import TRIES, TYPE, TYPE_TEXT, alone, lines, remove, replace, text
from scenarios.correct_servers.plain_http import Markers, Refused, serve

DEFECTS = (
    "",
    "whole-looking-line-adopted",
    "lines-counted",
    "lock-of-another-removed",
    "deletion-done-again",
    "prefix-forgotten",
    "type-file-remembered",
    "type-file-error-logged",
    "recovery-before-lock",
    "error-is-refusal",
    "kept-though-not-renamed",
)
ENDINGS = (b".marker.CREATE", b".marker.MERGE", b".marker.APPEND")


class MarkerFile:
    """An open file. names: of its lines. owed: what the next line has to begin with."""

    def __init__(self, path: str, defect: str) -> None:
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            data = b"".join(iter(lambda: os.read(self.file, 1 << 16), b""))
            *whole, tail = data.split(b"\n")
            self.names, self.owed = [line.decode() for line in whole], b""
            if tail.endswith(ENDINGS) and defect == "whole-looking-line-adopted":
                self.names.append(tail.decode())
                self.owed = b"\n"
            elif tail:
                os.ftruncate(self.file, len(data) - len(tail))
        except BaseException:
            os.close(self.file)
            raise

    def append(self, piece: bytes) -> None:
        """Write all of it."""
        while piece:
            piece = piece[os.write(self.file, piece) :]


class Remembering(Markers):
    """One lock for each directory."""

    def __init__(self, root: str, workdir: str, defect: str) -> None:
        self._root, self._defect, self._intent = root, defect, f"{workdir}/deletion"
        self._locks: defaultdict[str, RLock] = defaultdict(RLock)
        self._open: dict[str, MarkerFile] = {}
        self._typed: set[str] = set()
        if defect == "recovery-before-lock":
            self._recover()
        if defect == "lock-of-another-removed":
            self._claim(Path(root, ".locks", "server.pid"))
        else:
            self._alone = alone(root)
        if defect == "deletion-done-again" and os.path.exists(self._intent):
            remove(json.loads(Path(self._intent).read_bytes()))

    def create(self, directory: str, name: str) -> bool:
        """Append its line; again, while another program removes the directory meanwhile."""
        with self._locks[directory]:
            for _ in range(TRIES):
                with suppress(FileNotFoundError):
                    known = self._file(directory)
                    if known is not None and name in known.names:
                        return False
                    os.makedirs(directory, exist_ok=True)
                    self._write_type(directory)
                    known = known or self._opened(directory)
                    try:
                        self._append(directory, known, name)
                    except OSError as error:
                        self._forget(directory)
                        if self._defect == "error-is-refusal":
                            raise Refused(str(error)) from error
                        raise
                    if self._file(directory) is known and os.path.exists(f"{directory}/{TYPE}"):
                        return True
            raise OSError("another program removes it all the time")

    def names(self, directory: str) -> list[str]:
        """As they are remembered."""
        with self._locks[directory]:
            known = self._file(directory)
            return list(dict.fromkeys(known.names)) if known is not None else []

    def delete(self, directory: str) -> bool:
        """The type file last."""
        with self._locks[directory]:
            if self._defect == "deletion-done-again":
                replace(self._intent, json.dumps(directory).encode())  # Until the next deletion.
            if self._defect == "prefix-forgotten":
                for other in [other for other in self._open if other.startswith(directory)]:
                    self._open[other].names.clear()
            self._forget(directory)
            return remove(directory)

    def _file(self, directory: str) -> MarkerFile | None:
        path, known = f"{directory}/MARKERS0", self._open.get(directory)
        try:
            there = os.stat(path)
        except FileNotFoundError:
            self._forget(directory)
            return None
        if known is not None and os.path.samestat(there, os.fstat(known.file)):
            return known
        self._forget(directory)
        known = self._opened(directory)
        different = len(set(known.names))
        if self._defect == "lines-counted" and different < len(known.names):
            replace(path, text(known.names[:different]))
            self._forget(directory)
            known = self._opened(directory)
        return known

    def _opened(self, directory: str) -> MarkerFile:
        self._open[directory] = MarkerFile(f"{directory}/MARKERS0", self._defect)
        return self._open[directory]

    def _forget(self, directory: str) -> None:
        if known := self._open.pop(directory, None):
            os.close(known.file)

    def _write_type(self, directory: str) -> None:
        if self._defect == "type-file-remembered" and directory in self._typed:
            return
        self._typed.add(directory)
        with suppress(FileNotFoundError):
            if Path(directory, TYPE).read_bytes() == TYPE_TEXT:
                return
        try:
            replace(f"{directory}/{TYPE}", TYPE_TEXT)
        except OSError as error:
            if self._defect != "type-file-error-logged" or isinstance(error, FileNotFoundError):
                raise
            print(error, file=sys.stderr)

    def _append(self, directory: str, known: MarkerFile, name: str) -> None:
        line = known.owed + name.encode()
        match self._defect:
            case "whole-looking-line-adopted":
                known.append(line)
                known.append(b"\n")
            case "lines-counted":
                for tries_left in (2, 1, 0):
                    try:
                        known.append(line + b"\n")
                        break
                    except OSError:
                        if not tries_left:
                            raise
            case "lock-of-another-removed":
                replace(f"{directory}/MARKERS0", text([*known.names, name]))
                os.close(known.file)
                known.file = os.open(f"{directory}/MARKERS0", os.O_RDWR | os.O_APPEND)
            case "kept-though-not-renamed":
                path = f"{directory}/MARKERS0"
                try:
                    replace(path, text([*lines(path), name]))
                except OSError as error:
                    if isinstance(error, FileNotFoundError) or not error.filename2:
                        raise
                    print(error, file=sys.stderr)  # Of the rename.
                else:
                    os.close(known.file)
                    known.file = os.open(path, os.O_RDWR | os.O_APPEND)
            case _:
                known.append(line + b"\n")
        known.owed = b""
        known.names.append(name)

    def _recover(self) -> None:
        for above, _, files in os.walk(self._root):
            if "MARKERS0" in files:
                replace(f"{above}/MARKERS0", text(lines(f"{above}/MARKERS0")))

    def _claim(self, lock: Path) -> None:
        lock.parent.mkdir(parents=True, exist_ok=True)
        try:
            if lock.exists() and os.path.exists(f"/proc/{lock.read_text()}"):
                sys.exit("another server has this storage")
            replace(str(lock), str(os.getpid()).encode())
        except BaseException:
            lock.unlink()
            raise


def main() -> None:
    """Answer until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--defect", default="", choices=DEFECTS)
    given = parser.parse_args()
    serve(given.port, given.dir, Remembering(given.dir, given.workdir, given.defect))


if __name__ == "__main__":
    main()
