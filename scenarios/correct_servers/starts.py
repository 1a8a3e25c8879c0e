"""How the correct servers beside this module are started, and what of languages each needs.

None looks like another or like Hudi's, each keeps what the profile `http` promises, and none may be accused
(scenarios/test_correct_servers.py, benchmarks/correct_ones.py).
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from properties import tools

HERE = Path(__file__).resolve().parent
BUILD_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """needs: a program. build: what makes {built} from which file. command and reader: as `verify` takes them."""

    needs: str
    command: str
    source: str
    reader: str = ""
    storage: str = "local"


SERVERS = {
    "go-hex-files": Start(
        needs="go",
        source="hexfiles/main.go",
        command="{built} -port {port} -dir {storage}",
        reader="{built} -names {dir}",
    ),
    "go-by-size": Start(
        needs="go", source="bysize/main.go", command="{built} -port {port} -dir {storage} -threads {threads}"
    ),
    "go-vectored": Start(needs="go", source="vectored/main.go", command="{built} {port} {storage} {threads}"),
    "node-journal": Start(
        needs="node",
        source="journal.mjs",
        command="node {source} {port} {storage}",
        reader="sh -c 'cat \"$0\"/e[0-9]* 2>/dev/null || true' {dir}",
    ),
    "node-alone": Start(needs="node", source="alone.mjs", command="node {source} {port} {storage}"),
    "node-claimed": Start(needs="node", source="claimed.mjs", command="node {source} {port} {storage}"),
    "python-sqlite": Start(
        needs="python",
        source="in_sqlite.py",
        command="{python} -S {source} {port} {storage}",
        reader="{python} -S {source} --names {dir}",
    ),
    "python-one-log": Start(
        needs="python",
        source="one_log.py",
        command="{python} -S {source} {port} {storage}",
        reader="{python} -S {source} --names {dir}",
    ),
    "python-each-alone": Start(needs="python", source="each_alone.py", command="{python} -S {source} {port} {storage}"),
    "python-synced": Start(
        needs="python", source="synced.py", command="{python} -S {source} {port} {storage} {threads}"
    ),
    "python-owned": Start(needs="python", source="owned.py", command="{python} -S {source} {port} {storage}"),
    **{
        f"python-{name}": Start(
            needs="python",
            source=f"{name.replace('-', '_')}.py",
            command="{python} -S {source} {port} {storage}" + more,
        )
        for name, more in {
            "aside": "",
            "crash-only": "",
            "exchange": "",
            "leaves": " {threads}",
            "linked": " {threads}",
            "patient": "",
            "versions": "",
        }.items()
    },
    **{
        f"python-{name}": Start(
            needs="python",
            source=f"{name.replace('-', '_')}.py",
            command="{python} -S {source} {port} {storage}",
            reader="{python} -S {source} --names {dir}",
            storage="s3",
        )
        for name in ("generations", "one-key")
    },
}


def missing(name: str) -> str:
    """The reason why it cannot be built or run here, "" when it can."""
    needs = SERVERS[name].needs
    return "" if needs == "python" else tools.program(needs)


def start(name: str, out: Path) -> tuple[str, str]:
    """The command and the reader of a server, whose program is built into `out` if it has to be."""
    server = SERVERS[name]
    source = HERE / server.source
    built = out / name
    if server.needs == "go":
        build_go(source, built)
    values = {"{built}": built, "{source}": source, "{python}": sys.executable}
    texts = [server.command, server.reader]
    for key, path in values.items():
        texts = [text.replace(key, shlex.quote(str(path))) for text in texts]
    return texts[0], texts[1]


def build_go(source: Path, built: Path) -> None:
    """One file and the standard library: no module, and nothing is fetched."""
    command = ["go", "build", "-o", str(built), source.name]
    subprocess.run(command, check=True, cwd=source.parent, timeout=BUILD_S)


def words(name: str, out: Path) -> list[str]:
    """The options of `verify`."""
    command, reader = start(name, out)
    said = ["--sut", "http", "--storage", SERVERS[name].storage, "--start", command]
    return [*said, "--reader", reader] if reader else said
