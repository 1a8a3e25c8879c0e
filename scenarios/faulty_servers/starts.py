"""The servers beside this module by name, and how one is started. README.md says what is wrong with each."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD_S = 300
DEFECTS = {
    "python": (
        "marker-file-first",
        "type-with-new-directory",
        "temporary-adopted",
        "removed-before-rename",
        "answered-before-write",
        "listing-error-is-empty",
    ),
    "go": (
        "second-write-unchecked",
        "cut-line-is-a-name",
        "remembered-before-write",
        "cut-line-continued",
        "deletion-error-logged",
        "unreadable-file-skipped",
    ),
    "remembering": (
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
    ),
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
