"""Faster start of a Java server (a third of the time): its launcher compiled once, its classes from an archive.

`java Launcher.java` compiles the launcher at each start, and the JVM reads and checks some thousand classes again.
Both are done once for a class path and kept in the cache (class data sharing, JEP 350). Limits: Java 17 or later; what
a server loads only later, as the client of S3, is not in the archive. Measured by `benchmarks/java_start.py`.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import signal
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.surroundings.files import cache_directory, held, replacing
from marker_sim.surroundings.supervisor import run_to_end
from marker_sim.worlds.http.http_client import HttpConnection, probe
from marker_sim.worlds.http.servers import Command, Fleet, ServerPlace
from marker_sim.worlds.http.world import Surroundings

COMPILE_TIMEOUT_S = 180.0  # On a machine with much other work.
END_TIMEOUT_S = 60.0
ARCHIVE, LAUNCHER_JAR = "classes.jsa", "launcher.jar"
_COLLECTOR = "-XX:+UseSerialGC"  # The collector with the fastest start.
_ASKED = ("create", "exists", "list", "delete")  # Requests that load the classes to archive.


def quick_start(command: str, progress: Callable[[str], None]) -> str:
    """The command with a compiled launcher and an archive of classes; unchanged when these are not available.

    command: "java OPTIONS -cp PATHS Launcher.java …" with the placeholders of `--start`.
    """
    words = shlex.split(command)
    at = words.index("-cp")
    options, class_path, launcher = words[1:at], words[at + 1].split(os.pathsep), Path(words[at + 2])
    folders = [path for path in class_path if Path(path).is_dir()]  # They make an archive impossible.
    try:
        folder = cache_directory() / "java" / _key(words[0], class_path, (launcher,))
        jars = os.pathsep.join((str(folder / LAUNCHER_JAR), *(path for path in class_path if path not in folders)))
        begin = [_COLLECTOR, *options, "-cp", jars, launcher.stem, *words[at + 3 :]]
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder, wait=True):
            if not (folder / ARCHIVE).is_file():
                progress(f"preparing quick starts of {launcher.stem} (once)")
                _compile(words[0], class_path, (launcher,), folders, folder)
                with replacing(folder / ARCHIVE) as archive:
                    _store([words[0], f"-XX:ArchiveClassesAtExit={archive}", *begin])
        return shlex.join([words[0], f"-XX:SharedArchiveFile={folder / ARCHIVE}", *begin])
    except (OSError, HarnessError) as error:
        progress(f"servers start slowly: {error}")
        return command


def compiled(java: str, jars: list[str], sources: Sequence[Path], progress: Callable[[str], None]) -> Path:
    """The jar of a program's classes, compiled once for a class path; HarnessError when it does not compile. sources:
    the first has its name.
    """
    program, folder = sources[0], cache_directory() / "java" / _key(java, jars, sources)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder, wait=True):
            if not (folder / LAUNCHER_JAR).is_file():
                progress(f"compiling {program.stem} (once)")
                _compile(java, jars, sources, [], folder)
    except OSError as error:
        raise HarnessError(f"{program.name} cannot be compiled into {folder}: {error.strerror or error}") from error
    return folder / LAUNCHER_JAR


def archived(words: list[str], jar: Path, asked: str, progress: Callable[[str], None]) -> list[str]:
    """The command of a compiled program with an archive of the classes that it loads when it is asked these lines, by
    which it starts quickly; the same command where no archive can be made.
    """
    archive = jar.parent / ARCHIVE
    try:
        with held(jar.parent, wait=True), tempfile.TemporaryFile() as lines:
            if not archive.is_file():
                progress(f"preparing quick starts of {words[-1]} (once)")
                lines.write(asked.encode())
                lines.seek(0)
                late = f"{words[-1]} did not end in"
                with replacing(archive) as whole:
                    making = [words[0], f"-XX:ArchiveClassesAtExit={whole}", *words[1:]]
                    run_to_end(making, deadline_s=COMPILE_TIMEOUT_S, late=late, environment={}, stdin=lines)
    except (OSError, HarnessError) as error:
        progress(f"{words[-1]} starts slowly: {error}")
        return words
    return [words[0], f"-XX:SharedArchiveFile={archive}", *words[1:]]


def _key(java: str, class_path: list[str], sources: Sequence[Path]) -> str:
    """The cache key: everything that the archive depends on."""
    told = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    for path in (Path(os.path.realpath(java)), *_files(class_path)):
        status = path.stat()
        told.update(f"{path}|{status.st_size}|{status.st_mtime_ns}\n".encode())
    return told.hexdigest()[:24]


def _files(class_path: list[str]) -> Iterator[Path]:
    for entry in class_path:
        path = Path(entry)
        if path.name == "*":
            yield from sorted(path.parent.glob("*.jar"))
        elif path.is_dir():
            yield from sorted(path.iterdir())
        else:
            yield path


def _compile(java: str, class_path: list[str], sources: Sequence[Path], folders: list[str], folder: Path) -> None:
    """Make a jar of the compiled sources and of class path folders' files; HarnessError when they do not compile."""
    with tempfile.TemporaryDirectory() as classes:
        compiler = [java, _COLLECTOR, "-XX:TieredStopAtLevel=1", "-m", "jdk.compiler/com.sun.tools.javac.Main"]
        paths = os.pathsep.join(map(str, _files(class_path)))  # For "*" the compiler omits some jars.
        words = [*compiler, "-proc:none", "-cp", paths, "-d", classes, *map(str, sources)]
        late = f"{sources[0].name} was not compiled in"
        code, said = run_to_end(words, deadline_s=COMPILE_TIMEOUT_S, late=late, environment={})
        if code:
            raise HarnessError(f"{sources[0].name} does not compile: {said.strip()[-200:]}")
        with replacing(folder / LAUNCHER_JAR) as whole, zipfile.ZipFile(whole, "w") as jar:
            for found in (classes, *folders):
                for file in sorted(Path(found).rglob("*")):
                    jar.write(file, file.relative_to(found))


def _store(words: list[str]) -> None:
    """Run a server that writes its class archive when it ends; HarnessError when it does not answer or end."""
    with tempfile.TemporaryDirectory() as scratch:
        place, root = f"{scratch}/t/.hoodie/.temp/001", Path(scratch)
        around, command = Surroundings({"storage": scratch}, {}), Command(text=shlex.join(words))
        with Fleet(command, root / "work", root / "logs") as fleet:
            server = fleet.start(ServerPlace(lambda name: around, 2, 20), "archive", lambda port: probe(port, place))
            connection = HttpConnection(server.port, timeout_s=5.0)
            for operation in _ASKED:
                name = {"markername": "p/f.parquet.marker.CREATE"} if operation == "create" else {}
                connection.call(operation, {"markerdirpath": place, **name}, lambda: None)
            connection.abort()
            server.program.signal(signal.SIGTERM)
            deadline = time.monotonic() + END_TIMEOUT_S
            while server.exited() is None:
                if time.monotonic() > deadline:
                    raise HarnessError(f"{' '.join(words[-8:])} does not end")
                time.sleep(0.05)
