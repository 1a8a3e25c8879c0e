"""What tests need besides Python packages: programs, jars and rights of this machine.

A session of all tests fetches the missing ones first (`fetch`), once for the machine; then it says in one line each
what is left out here and how to have it (`left_out`). Tests read the same reasons by `needs`.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from functools import cache, partial

import pytest

from marker_sim.errors import HarnessError
from marker_sim.targets import hudi, hudi_java
from marker_sim.worlds.proxies import install as toxiproxy
from properties.faces.surroundings import find_java
from properties.faces.worlds import refused

HUDI = "1.2.0"  # The release that every session tests; `pytest -m jvm` tests all.
JARS = (hudi.bundle(HUDI), hudi_java.client(HUDI))
VERSION_S = 60.0
CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)


@cache
def java() -> str:
    """The reason why no JVM can be started, "" when one can."""
    try:
        find_java("the JVM")
    except HarnessError as error:
        return str(error)
    return ""


def wires() -> str:
    """The reason why no connection can be made to fail, "" when one can."""
    why = toxiproxy.missing()
    return f"there is no go on PATH to build toxiproxy with; {toxiproxy.GET_GO}" if why and program("go") else why


def jars() -> str:
    """The reason why Hudi cannot be started, "" when it can."""
    if why := java():
        return why
    return "" if all(each.cached() for each in JARS) else f"Hudi {HUDI} is not here; marker-sim doctor --install"


def browser() -> str:
    """The reason why pages cannot be looked at, "" when they can."""
    return "" if CHROMIUM else "no Chromium is on PATH; `apt-get install chromium` puts one there"


@cache
def program(name: str) -> str:
    """The reason why a program cannot be used, "" when it can: one on PATH may be a launcher of what is not there."""
    if shutil.which(name) is None:
        return f"no {name} is on PATH; install it and put it there"
    try:
        asked = [name, "version" if name == "go" else "--version"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=VERSION_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{name} cannot be run: {error}"
    return "" if done.returncode == 0 else f"{name} on PATH does not run: {(done.stdout + done.stderr).strip()}"


# What may be missing, and the reason why it is.
PARTS: dict[str, Callable[[], str]] = {
    "connections that fail, by toxiproxy": wires,
    "Spark": java,
    f"Hudi {HUDI}": jars,
    "report.html in a browser": browser,
    "storage calls that stop at the kit": refused,
    **{f"examples that {name} builds or runs": partial(program, name) for name in ("go", "node", "javac")},
}


def needs(why: str) -> pytest.MarkDecorator:
    """A mark for tests that cannot run for a reason, "" where they can."""
    return pytest.mark.skipif(why != "", reason=why)


def fetch(say: Callable[[str], None]) -> None:
    """Build toxiproxy and fetch the jars that are missing, where the machine has what that takes; says what it did."""
    for words, missing, install in (
        ("toxiproxy", toxiproxy.missing() and not program("go"), lambda: toxiproxy.install_server(say)),
        (f"Hudi {HUDI}", jars() and not java(), lambda: [each.find(say) for each in JARS]),
    ):
        if not missing:
            continue
        began = time.monotonic()
        try:
            install()
        except HarnessError as error:
            say(f"{words}: {error}")
        else:
            say(f"{words}: fetched in {time.monotonic() - began:.0f} s, once for this machine")


def left_out() -> tuple[str, ...]:
    """A line for each part that is missing here."""
    return tuple(f"left out: {part}, for {why}" for part, missing in PARTS.items() if (why := missing()))
