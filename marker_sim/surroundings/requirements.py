"""The Python packages that the kit needs: names, extras and purposes. `marker-sim doctor` prints them. Java and Spark.

The check is cheap and imports nothing, so it is done before a process starts, which could only fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from marker_sim.errors import HarnessError

JAVA_MIN = 17
GET_JAVA = f"install a JDK {JAVA_MIN} or later (Debian: openjdk-{JAVA_MIN}-jdk-headless) and put java on PATH"
JAVA_TIMEOUT_S = 30.0


class Requirement(NamedTuple):
    """A required package, by its name in a registry.

    extra: the extra that installs it, "" for a plain install.
    needed_for: the part that needs it.
    """

    package: str
    extra: str
    needed_for: str

    @property
    def how(self) -> str:
        """The command that installs the package."""
        return _how(self.extra)


_SPARK = "--sut hudi-java:VERSION and hudi-spark:VERSION"
_ALWAYS = ("greenlet", "hypothesis", "jinja2", "msgspec", "psutil", "pyarrow", "rich", "typer")
# By the name of the imported module.
REQUIREMENTS = {
    **{name: Requirement(name, "", "verify") for name in _ALWAYS},
    "httptools": Requirement("httptools", "serve", "serve and real processes"),
    "uvicorn": Requirement("uvicorn", "serve", "serve and real processes"),
    "boto3": Requirement("boto3", "s3", "storage on S3, audit of tables on S3"),
    "moto": Requirement("moto", "s3", "--storage s3 of foreign systems"),
    "urllib3": Requirement("urllib3", "foreign", "--sut http and real processes"),
    "pyspark": Requirement("pyspark", "hudi", f"--sut hudi:VERSION, {_SPARK.removeprefix('--sut ')}, --spark-master"),
    "fastavro": Requirement("fastavro", "audit", f"audit of timelines in Avro, {_SPARK}"),
    "hudi": Requirement("hudi", "spark", _SPARK),
}
_SERVE = ("httptools", "uvicorn")
_S3 = ("boto3", "moto")
_FOREIGN = ("urllib3",)
# The imported modules of each part. Real processes are the kit's own driver, executors and server.
NEEDS: dict[str, tuple[str, ...]] = {
    "http on local": _FOREIGN,
    "http on s3": (*_FOREIGN, *_S3),
    "hudi on local": (*_FOREIGN, "pyspark"),
    "hudi on s3": (*_FOREIGN, "pyspark", *_S3),
    "hudi-java on local": ("fastavro", "hudi", "pyspark"),
    "hudi-java on s3": ("fastavro", "hudi", "pyspark", *_S3),
    "reference-spark on local": ("pyspark", "urllib3", *_SERVE),
    "reference-spark on s3": ("pyspark", "urllib3", *_SERVE, *_S3),
    "hudi-spark on local": (*_FOREIGN, "fastavro", "hudi", "pyspark"),
    "hudi-spark on s3": (*_FOREIGN, "fastavro", "hudi", "pyspark", *_S3),
    "real processes on local": (*_SERVE, "urllib3"),
    "real processes on s3": (*_SERVE, "urllib3", *_S3),
    "wires": _FOREIGN,
    "spark": ("pyspark", "urllib3", *_SERVE, *_S3),
}


def lacking(part: str) -> str:
    """What a part of the kit lacks here and how to get it, as the end of "it needs ..."; "" when nothing is missing."""
    return _lacking(NEEDS[part], ("spark",) if part == "spark" else ())


def need(what: str, *modules: str) -> None:
    """HarnessError when a module that `what` needs is not installed; nothing is imported."""
    why = _lacking(modules)
    if why:
        raise HarnessError(f"{what} needs {why}")


@contextmanager
def importing(what: str, *extras: str) -> Iterator[None]:
    """A context that turns a failed import of `what` into a HarnessError with package and extra, or with `extras`."""
    try:
        yield
    except ImportError as error:
        name = (error.name or "").partition(".")[0].replace("botocore", "boto3")  # boto3 installs botocore.
        if name not in REQUIREMENTS:
            raise HarnessError(f"{what}: {error}; `marker-sim doctor` says what is missing") from error
        raise HarnessError(f"{what} needs {_installing((name,), extras)}") from error


def spark_home() -> Path:
    """The directory of PySpark; HarnessError says how to get it."""
    need("Hudi", "pyspark")
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def find_java(who: str = "Hudi") -> str:
    """The path of a Java that is new enough: JAVA_HOME's, else the one on PATH; HarnessError says how to get it.

    who: the part that needs it, for the message.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME is {home!r} and has no bin/java" if home else "there is no java on PATH"
        raise HarnessError(f"{who} needs Java and {where}; {GET_JAVA}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{java} -version did not answer ({error}); {GET_JAVA}") from error
    number = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if number is None or int(number[1]) < JAVA_MIN:
        lines = (said.stderr + said.stdout).strip().splitlines()
        shown = [line for line in lines if "Picked up " not in line][:1]
        raise HarnessError(f"{java} is {' '.join(shown) or 'no Java'}, which is too old; {GET_JAVA}")
    return java


def _lacking(modules: Iterable[str], extras: Iterable[str] = ()) -> str:
    missing = [module for module in modules if find_spec(module) is None]
    return _installing(missing, extras) if missing else ""


def _installing(missing: Iterable[str], extras: Iterable[str]) -> str:
    """The packages of these modules and the command to install them."""
    wanted = [REQUIREMENTS[module] for module in missing]
    chosen = {*extras} or {each.extra for each in wanted}
    if "hudi" in chosen:
        chosen.discard("foreign")  # Each of these extras includes the one before it.
    if "spark" in chosen:
        chosen = {"spark"}
    names = ", ".join(each.package for each in wanted)
    packages = f"package {names}, which is" if len(wanted) == 1 else f"packages {names}, which are"
    return f"the Python {packages} not installed; {_how(','.join(sorted(chosen)))}"


def _how(extras: str) -> str:
    return f"pip install {repr(f'.[{extras}]') if extras else '.'} in a clone of marker-sim"
