"""Runs a script where neither the kit nor its environment can be found, with Hudi and an S3 where it asks for them."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from marker_sim.report.words import printable
from marker_sim.surroundings.requirements import spark_home
from marker_sim.targets import hudi, hudi_java

PYTHON = str(Path(sys.base_prefix) / "bin" / "python3")  # Without the environment's packages.
PATH = "/usr/local/bin:/usr/bin:/bin"
_OWN = (  # What differs from run to run: where, by which, and when.
    (re.compile(r"(?:/[\w.-]+)*/tmp\.\w+(?:/\d+)?"), "DIR"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "TIME"),
    (re.compile(r"by-hand-\d+-\d+"), "PREFIX"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellRun:
    """The exit code and the lines of a script, and processes that it left."""

    code: int
    lines: tuple[str, ...]
    errors: str
    left: tuple[int, ...]


def run_script(
    script: str, folder: Path, timeout_s: float = 300, language: str = "python", **settings: str
) -> ShellRun:
    """Run a script in a folder, with these settings in its environment; bytes that are no text are shown as \\xNN.

    language: "python", or "java", where CLASSPATH has the class path.
    Raises subprocess.TimeoutExpired.
    """
    java = language == "java"
    file = folder / ("script.java" if java else "script.py")
    file.write_text(script, encoding="utf-8")
    environment = {"PATH": PATH, "TMPDIR": str(folder), **settings}
    words = ["java"] if java else [PYTHON, "-I", "-S"]
    done = subprocess.run(
        [*words, str(file)], capture_output=True, env=environment, cwd=folder, timeout=timeout_s, check=False
    )
    left = tuple(
        each.pid
        for each in psutil.process_iter(["environ"])
        if (each.info["environ"] or {}).get("TMPDIR") == str(folder)
    )
    said, errors = (text.decode(errors="backslashreplace") for text in (done.stdout, done.stderr))
    return ShellRun(code=done.returncode, lines=tuple(said.removesuffix("\n").split("\n")), errors=errors, left=left)


def same_in_every_run(line: str) -> str:
    """A line without folders, ports and times, in letters that a terminal shows."""
    line = printable(line)
    for own, word in _OWN:
        line = own.sub(word, line)
    return line


def settings_of_hudi(version: str, endpoint: str = "") -> dict[str, str]:
    """What the script of a released Hudi asks for; endpoint: of an S3, "" for a local directory."""
    java, jars, s3a = hudi.find_jars(version, hudi.NAME, "s3" if endpoint else "local", print, None)
    settings = {
        "PATH": f"{Path(java).resolve().parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
        "BUNDLE": os.pathsep.join(map(str, jars)),
        "JARS": str(spark_home() / "jars" / "*"),
    }
    return {**settings, "S3A": os.pathsep.join(map(str, s3a)), "ENDPOINT": endpoint} if endpoint else settings


def settings_of_java_client(version: str) -> dict[str, str]:
    """What the program of a released Hudi's Java client asks for."""
    settings = settings_of_hudi(version)
    jars = (*map(str, hudi_java.client(version).find(print)), settings["BUNDLE"], settings["JARS"])
    return {"PATH": settings["PATH"], "CLASSPATH": os.pathsep.join(jars)}


@contextmanager
def s3_store() -> Iterator[str]:
    """The address of a moto server of its own, with the bucket `lake`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    store = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 30
    try:
        while True:
            try:
                urllib.request.urlopen(urllib.request.Request(f"{url}/lake", method="PUT"), timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, f"{shlex.join(words)} does not answer"
                time.sleep(0.1)
        yield url
    finally:
        store.kill()
        store.wait()
