"""The servers beside this module by name, and how one is started. README.md says what is wrong with each."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from scenarios.faulty_servers import remembering, server

HERE = Path(__file__).resolve().parent
GO = HERE / "go_server"
BUILD_S = 300
OPTIONS = "--port {port} --dir {storage} --threads {threads}"


def _in_go(design: str) -> list[str]:
    """The defects of a design, as main.go lists them."""
    listed = re.search(rf'"{design}": \{{(.*?)\n\t\t?\}}', (GO / "main.go").read_text(encoding="utf-8"), re.DOTALL)
    assert listed is not None
    return re.findall(r'"([a-z0-9-]+)"', listed[1])


DEFECTS = {
    "python": list(server.DEFECTS[1:]),
    "remembering": list(remembering.DEFECTS[1:]),
    "go-appending": _in_go("appending"),
    "go-replacing": _in_go("replacing"),
}
SERVERS = {f"correct-{program}": (program, "") for program in DEFECTS} | {
    defect: (program, defect) for program, defects in DEFECTS.items() for defect in defects
}
"""Program and defect by the server's name, the correct ones first."""


def build(out: Path) -> Path:
    """The program in Go. It needs the standard library only, and nothing is fetched."""
    program = out.resolve() / "faulty-server"
    subprocess.run(["go", "build", "-o", str(program), "."], check=True, cwd=GO, timeout=BUILD_S)
    return program


def command(name: str, go: Path) -> str:
    """What starts a server, as `--start` takes it. go: what `build` made."""
    program, defect = SERVERS[name]
    match program:
        case "python":
            words, options = [sys.executable, "-S", str(HERE / "server.py")], "--interval-ms {interval_ms}"
        case "remembering":
            words, options = [sys.executable, "-S", str(HERE / "remembering.py")], "--workdir {workdir}"
        case _:
            words, options = [str(go), "--design", program.removeprefix("go-")], "--interval-ms {interval_ms}"
    return " ".join([*map(shlex.quote, words), OPTIONS, options, *(["--defect", defect] if defect else [])])
