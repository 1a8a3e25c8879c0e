"""A Spark application for `--spark-master`: the accepted masters, how the driver starts here, what is shipped.

The driver's JVM is a child of this process and ends with it, and its executors end with that. Settings that are not
given here come from `spark-defaults.conf` in `SPARK_CONF_DIR`, as in any application.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from marker_sim.errors import HarnessError, UsageError
from marker_sim.surroundings.requirements import find_java, need, spark_home
from marker_sim.surroundings.worker_pool import VARIABLE, environment_as_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = re.compile(r"local\[[1-9]\d*\]")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[[1-9]\d*,[1-9]\d*,[1-9]\d*\]")
_STANDALONE = re.compile(r"spark://(?P<host>[\w.-]+):(?P<port>\d{1,5})")
_OTHERS = re.compile(r"yarn|k8s://\S+")  # Masters that are passed on to Spark without a check.
CONNECT_S = 5.0
SAID_MAX = 400
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def parse_master(text: str | None) -> str | None:
    """The URL of `--spark-master`, None for none; UsageError for one that is not accepted."""
    if text is None or any(form.fullmatch(text) for form in (_LOCAL, _LOCAL_CLUSTER, _STANDALONE, _OTHERS)):
        return text
    raise UsageError(
        f"--spark-master was given {text!r}; accepted are local[THREADS], local-cluster[EXECUTORS,CORES,MEMORY_MB],"
        " spark://HOST:PORT, yarn and k8s://ADDRESS"
    )


@contextmanager
def open_session(
    who: str,
    master: str,
    scratch: Path,
    *,
    settings: Mapping[str, str] = MappingProxyType({}),
    mark: str = "",
    logs: Path | None = None,
) -> Iterator[SparkSession]:
    """A context with the application's session; HarnessError when it does not start.

    who: the name of the command in messages.
    scratch: a directory for Spark's temporary files.
    settings: override those of `SETTINGS`.
    mark: the value of VARIABLE in its processes on this machine, "" for none.
    logs: the folder for output of Spark and of executors of `local-cluster`; None to discard it.
    """
    need(f"{who} --spark-master", "pyspark")
    java = find_java(f"{who} --spark-master")
    _reach(master)
    kept = logs or scratch
    kept.mkdir(parents=True, exist_ok=True)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName(f"marker-sim {who}")
    for name, value in {**_settings(master, scratch), **settings}.items():
        builder = builder.config(name, value)
    own = {"JAVA_HOME": str(Path(java).resolve().parent.parent), "SPARK_HOME": str(spark_home())}
    own |= {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)} | ({VARIABLE: mark} if mark else {})
    if _LOCAL_CLUSTER.fullmatch(master):
        own["SPARK_HOME"] = str(_home_of_workers(scratch, kept))
    try:
        with _environment(own), _output_to(kept / "spark.log"):
            session = builder.getOrCreate()
    except Exception as error:
        _end_jvm()
        where = f"; Spark's log is {logs / 'spark.log'}" if logs else ""
        raise HarnessError(f"{master} starts no application: {said_by(error)}{where}") from error
    try:
        yield session
    finally:
        with suppress(Exception):  # It may have ended already, with its JVM killed.
            session.stop()
        _end_jvm()


def ship(session: SparkSession, sut: str, scratch: Path) -> None:
    """Send the module of `package.module:factory` to the executors, unless it is installed like the kit itself."""
    module, found, _ = sut.partition(":")
    if not found or module in ("mutant", "command"):
        return
    top = module.partition(".")[0]
    spec = importlib.util.find_spec(top)
    if spec is None or top == "marker_sim":
        return
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")}
    place = Path(next(iter(spec.submodule_search_locations or ()), spec.origin or "")).resolve()
    if installed & set(place.parents):
        return
    if place.is_dir():
        place = Path(shutil.make_archive(str(scratch / top), "zip", place.parent, top))
    session.sparkContext.addPyFile(str(place))


def said_by(error: BaseException) -> str:
    """The important sentence in an error of Spark: Python's last one on an executor, else Java's first."""
    java = getattr(error, "java_exception", None)
    text = str(java.getMessage()) if java is not None else str(error)
    raised = re.findall(r"^(?:[\w.]+Error|[\w.]+Exception|KeyboardInterrupt|SystemExit): (.+)$", text, re.MULTILINE)
    lines = raised[-1:] or text.strip().splitlines()[:1] or [type(error).__name__]
    return lines[0].strip()[:SAID_MAX]


def _settings(master: str, scratch: Path) -> dict[str, str]:
    settings = SETTINGS | {"spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}
    if _LOCAL.fullmatch(master) or _LOCAL_CLUSTER.fullmatch(master):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
        settings["spark.executorEnv.PYTHONPATH"] = environment_as_here()["PYTHONPATH"]
    return settings


def _reach(master: str) -> None:
    """HarnessError when no master listens at an address; Spark itself would try for a minute."""
    found = _STANDALONE.fullmatch(master)
    if found is None:
        return
    try:
        socket.create_connection((found["host"], int(found["port"])), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise HarnessError(f"no master answers at {master} ({error}); start the master, or give another URL") from error


def _home_of_workers(scratch: Path, logs: Path) -> Path:
    """A directory like PySpark's, so that workers of `local-cluster` keep files below it and not in site-packages."""
    home, work = scratch / "spark", logs / "spark-work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    home.mkdir(exist_ok=True)
    for part in spark_home().iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    (home / "work").symlink_to(work.resolve())
    return home


@contextmanager
def _environment(own: dict[str, str]) -> Iterator[None]:
    """A context with more variables in this process's environment, for a process that PySpark starts with it."""
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    """A context in which started processes write to a log; a JVM inherits standard output and error of this process."""
    kept = [os.dup(number) for number in (1, 2)]
    sys.stdout.flush()
    sys.stderr.flush()
    with log.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def _end_jvm() -> None:
    """End the JVM that PySpark started for this process, if there is one; the next session starts another."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    with suppress(Exception):
        gateway.proc.stdin.close()
        gateway.proc.wait(10)
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
