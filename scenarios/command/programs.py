"""How the programs beside this module are built and started, and what of languages each needs."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from properties import tools

SOURCES = Path(__file__).resolve().parent
NEEDS = {"go": "go", "java": "javac", "node": "node"}
BUILD_S = 300
JAVA = "java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Xmx64m"


def lacks(language: str) -> str:
    """The reason why the program cannot be built or run here, "" when it can."""
    return tools.program(NEEDS[language])


def command_of(language: str, out: Path) -> str:
    """The command of a program, which is built into `out` if it has to be."""
    if language == "go":
        building = ["go", "build", "-o", str(out / "markers"), "."]
        subprocess.run(building, check=True, cwd=SOURCES / "go_markers", timeout=BUILD_S)
        return shlex.quote(str(out / "markers"))
    if language == "java":
        building = ["javac", "-d", str(out), *map(str, SOURCES.glob("*.java"))]
        subprocess.run(building, check=True, timeout=BUILD_S)
        return f"{JAVA} -cp {shlex.quote(str(out))} Markers"
    return f"node {shlex.quote(str(SOURCES / 'partitions.mjs'))}"
