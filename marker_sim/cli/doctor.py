"""What is on this machine, what each part of the kit needs of it, and how to get what is missing.

The check changes nothing and needs no network; only `--install` downloads, and only into the kit's own cache.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from marker_sim.errors import EXIT_HARNESS, EXIT_HOLDS, HarnessError
from marker_sim.report.table import output_console, plain_table
from marker_sim.surroundings.requirements import GET_JAVA, REQUIREMENTS, Requirement, find_java, lacking
from marker_sim.targets import hudi, hudi_java
from marker_sim.targets.jvm.bundles import Jars
from marker_sim.worlds.door.available import refused
from marker_sim.worlds.proxies import install as toxiproxy

VERSION_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One requirement that was checked.

    found: its version or place, "" when it is missing.
    how: the way to get it.
    """

    name: str
    found: str
    needed_for: str
    how: str


def doctor(
    install: Annotated[
        bool, typer.Option("--install", help="Build and download what the installed extras can use.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
) -> int:
    """List what is installed, what is missing and how to get it."""
    if install:
        _install()
    checks = examine()
    if as_json:
        print(json.dumps({"schema": 1, "checks": [asdict(check) for check in checks]}, indent=1))
    else:
        output_console().print(_table(checks))
    core = {each.package for each in REQUIREMENTS.values() if not each.extra}
    ready = all(check.found for check in checks if check.name in core)
    if not as_json:
        output_console().print("`marker-sim verify` can run here" if ready else "`marker-sim verify` cannot run here")
    return EXIT_HOLDS if ready else EXIT_HARNESS


def examine() -> tuple[Check, ...]:
    """All checks, those that `verify` needs first."""
    return (
        *(_package(each) for each in REQUIREMENTS.values()),
        _java(),
        *_bundles(),
        Check(name="go", found=_first_line(("go", "version")), needed_for="building toxiproxy", how=toxiproxy.GET_GO),
        Check(
            name=toxiproxy.PROGRAM,
            found=str(toxiproxy.find_server() or ""),
            needed_for="faults of connections of --sut http and hudi:VERSION",
            how=f"{toxiproxy.HOW}, which builds it with Go, or a program {toxiproxy.PROGRAM} on PATH",
        ),
        _door(),
    )


def _package(needed: Requirement) -> Check:
    try:
        found = metadata.version(needed.package)
    except metadata.PackageNotFoundError:
        found = ""
    return Check(name=needed.package, found=found, needed_for=needed.needed_for, how=needed.how)


def _door() -> Check:
    """The check whether storage calls of processes stop at the kit, by starting one."""
    why = refused()
    how = "Linux 5.19 or later on x86-64 or aarch64, and a container that permits it" + (why and f"; refused: {why}")
    needed_for = "--storage local of --sut http, hudi:VERSION, hudi-java:VERSION and hudi-spark:VERSION"
    return Check(name="storage calls", found="" if why else "they stop at the kit", needed_for=needed_for, how=how)


def _java() -> Check:
    how = GET_JAVA
    try:
        found = _first_line((find_java(), "-version"))
    except HarnessError as error:
        found, how = "", str(error)
    needed_for = "--sut hudi:VERSION, hudi-java:VERSION and hudi-spark:VERSION"
    return Check(name="java", found=found, needed_for=needed_for, how=how)


def _bundles() -> tuple[Check, ...]:
    """The Hudi jars in the cache."""
    wanted = [(f"hudi {version} bundle", f"--sut hudi:{version}", hudi.bundle(version)) for version in hudi.VERSIONS]
    wanted += [
        (f"hudi {version} java client", f"--sut hudi-java:{version}", hudi_java.client(version))
        for version in hudi_java.VERSIONS
    ]
    wanted.append(("hadoop s3a", "--sut hudi:VERSION, hudi-java:VERSION and hudi-spark:VERSION on S3", hudi.S3A))
    return tuple(
        Check(
            name=name,
            found=" and ".join(map(str, jars.cached())),
            needed_for=needed_for,
            how="marker-sim doctor --install, or let the first verify fetch it",
        )
        for name, needed_for, jars in wanted
    )


def _install() -> None:
    """Build and fetch what the installed extras can use and the cache lacks, reporting on standard error.

    Packages of further extras, and parts that this machine cannot build, are left out with a sentence, not a failure.
    Each part is tried even if others fail; HarnessError for those that failed.
    """
    failed = list[str]()
    bundles = (*map(hudi.bundle, hudi.VERSIONS), *map(hudi_java.client, hudi_java.VERSIONS))
    for what, why, part in (
        ("toxiproxy", _no_wires(), lambda: toxiproxy.find_server() or toxiproxy.install_server(_say)),
        ("the bundles of Hudi", _no_jars("hudi on local", bundles), lambda: [jars.find(_say) for jars in bundles]),
        ("S3A for Hudi", _no_jars("hudi on s3", (hudi.S3A,)), lambda: hudi.S3A.find(_say)),
    ):
        if why:
            _say(f"{what}: left out, because {why}")
            continue
        try:
            part()
        except HarnessError as error:
            failed.append(str(error))
    if failed:
        raise HarnessError("; ".join(failed))


def _no_wires() -> str:
    """The reason why toxiproxy is useless or unavailable here, "" when it is usable."""
    why = lacking("wires")
    if why:
        return f"this needs {why}"
    here = toxiproxy.find_server() is not None or shutil.which("go") is not None
    return "" if here else f"there is no go on PATH to build it with; {toxiproxy.GET_GO}"


def _no_jars(part: str, jars: tuple[Jars, ...]) -> str:
    why = lacking(part)
    if why:
        return f"this needs {why}"
    return "" if _java().found or all(each.cached() for each in jars) else f"this needs Java; {GET_JAVA}"


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _first_line(command: tuple[str, ...]) -> str:
    """The first line of a command's output, "" when the command is missing or does not answer.

    Java first prints options that it took from the environment, which do not show its version.
    """
    program = shutil.which(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *command[1:]], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = (line for line in (done.stdout + done.stderr).splitlines() if "Picked up " not in line)
    return next(lines, "") if done.returncode == 0 else ""


def _table(checks: Iterable[Check]) -> Table:
    table = plain_table("what", "here", "needed for", "how to get it")
    for check in checks:
        here = Text(check.found, style="green") if check.found else Text("missing", style="yellow")
        table.add_row(check.name, here, check.needed_for, "" if check.found else Text(check.how))
    return table
