"""The toxiproxy server program: one known version in the kit's cache, else on PATH; built from its Go module.

`go install` takes the module and everything it needs through the user's own Go settings (GOPROXY, GOFLAGS, caches);
the program appears in the cache whole or not at all. Source: github.com/Shopify/toxiproxy, v2.12.0, cmd/server; its
go.mod asks for Go 1.23, which any Go from 1.21 on fetches by itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.surroundings.files import CACHE_VARIABLE, cache_directory, held
from marker_sim.surroundings.requirements import lacking
from marker_sim.surroundings.supervisor import run_to_end

VERSION = "2.12.0"
MODULE = "github.com/Shopify/toxiproxy/v2"
PROGRAM = "toxiproxy-server"
HOW = "marker-sim doctor --install"
GET_GO = "install Go 1.23 or later (1.21 fetches what it needs) and put go on PATH"
BUILD_TIMEOUT_S = 900.0
_LINES_QUOTED = 3


def find_server() -> Path | None:
    """The program in the cache, else the one on PATH, else None. Nothing is started."""
    cached = _cached()
    if os.access(cached, os.X_OK):
        return cached
    found = shutil.which(PROGRAM)
    return Path(found) if found else None


def missing() -> str:
    """The reason why wires are unavailable here, with the remedy; "" when they are available."""
    why = lacking("wires")
    if why:
        return f"it needs {why}"
    return "" if find_server() is not None else f"toxiproxy is not installed; {HOW}"


def install_server(progress: Callable[[str], None]) -> Path:
    """The program in the cache, built if necessary; HarnessError when Go is missing or fails."""
    target = _cached()
    if os.access(target, os.X_OK):
        return target
    go = shutil.which("go")
    if go is None:
        raise HarnessError(f"building toxiproxy needs Go, and there is no go on PATH; {GET_GO}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with held(target.parent / "lock", wait=True):
            if not os.access(target, os.X_OK):
                progress(f"toxiproxy {VERSION}: building it with {go}")
                with tempfile.TemporaryDirectory(dir=target.parent, prefix="building-") as folder:
                    _build(go, Path(folder)).replace(target)
    except OSError as error:
        raise HarnessError(
            f"the cache {cache_directory()} cannot be used ({error.strerror or error}); free space there or set"
            f" {CACHE_VARIABLE}"
        ) from error
    return target


def _cached() -> Path:
    return cache_directory() / "toxiproxy" / f"{PROGRAM}-{VERSION}"


def _build(go: str, folder: Path) -> Path:
    """The program, built in a folder."""
    words = [go, "install", "-ldflags", f"-X {MODULE}.Version={VERSION}", f"{MODULE}/cmd/server@v{VERSION}"]
    # In a separate folder, so that a go.mod or go.work of the caller has no effect.
    code, said = run_to_end(
        words,
        deadline_s=BUILD_TIMEOUT_S,
        late=f"toxiproxy {VERSION} was not built within",
        environment={"GOBIN": str(folder)},
        folder=folder,
    )
    program = folder / "server"
    if code != 0 or not program.is_file():
        lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("go: downloading")]
        shown = " | ".join(lines[-_LINES_QUOTED:]) or "no output"
        raise HarnessError(
            f"toxiproxy {VERSION} cannot be built (go ended with {code}): {shown}; check the network and"
            f" GOPROXY, or put a program called {PROGRAM} on PATH yourself"
        )
    return program
