"""The servers beside this module by name, and how one is started. README.md says what is wrong with each."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from scenarios.faulty_servers import remembering, server

HERE = Path(__file__).resolve().parent
BUILD_S = 300
DEFECTS = {
    "python": server.DEFECTS[1:],
    "go": (
        "second-write-unchecked",
        "cut-line-is-a-name",
        "remembered-before-write",
        "cut-line-continued",
        "deletion-error-logged",
        "unreadable-file-skipped",
    ),
    "remembering": remembering.DEFECTS[1:],
}
SERVERS = {f"correct-{language}": (language, "") for language in DEFECTS} | {
    defect: (language, defect) for language, defects in DEFECTS.items() for defect in defects
}
"""Language (or the second program in Python) and defect by the server's name, the correct ones first."""


def build(out: Path) -> Path:
    """The program in Go. It needs the standard library only, and nothing is fetched."""
    program = out.resolve() / "faulty-server"
    subprocess.run(["go", "build", "-o", str(program), "."], check=True, cwd=HERE / "go_server", timeout=BUILD_S)
    return program


def command(name: str, program: Path) -> str:
    """What starts a server, as `--start` takes it."""
    language, defect = SERVERS[name]
    source = {"python": "server.py", "remembering": "remembering.py"}.get(language)
    words = [sys.executable, "-S", str(HERE / source)] if source else [str(program)]
    options = ["--port", "{port}", "--dir", "{storage}", "--threads", "{threads}"]
    options += ["--workdir", "{workdir}"] if language == "remembering" else []
    return " ".join([*map(shlex.quote, words), *options, *(["--defect", defect] if defect else [])])
