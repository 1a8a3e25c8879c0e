"""The real Hudi timeline server of a released version: its bundle, its class path, its start command.

The bundle `hudi-spark3.5-bundle_2.12` holds `org.apache.hudi.timeline.service.TimelineService`; Spark's own jars, which
PySpark brings along, are the rest of the class path. PySpark's resolver fetches the bundle once into a cache
(MARKER_SIM_CACHE, else ~/.cache/marker-sim); afterwards nothing of Spark is started. `main` of the service returns at
once and its threads are daemons, so a launcher of a few lines keeps the JVM alive. Source: tried with
0.15.0, 1.0.2, 1.1.1 and 1.2.0 on Java 17.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from marker_sim.campaign import Campaign
from marker_sim.errors import HarnessError, UsageError
from marker_sim.history import History
from marker_sim.judges.profiles import Profile
from marker_sim.real.rounds import KINDS
from marker_sim.sut.http import run_http

VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
COORDINATES = "org.apache.hudi:hudi-spark3.5-bundle_2.12"
CACHE_VARIABLE = "MARKER_SIM_CACHE"
JAVA_MIN = 17
RESOLVE_TIMEOUT_S = 900.0
JAVA_TIMEOUT_S = 30.0
LAUNCHER = "TimelineServiceLauncher.java"
_QUIET = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")


def run_hudi(
    version: str,
    *,
    storage: str,
    budget_s: float,
    seed: int,
    report_dir: Path,
    profile: Profile,
    progress: Callable[[str], None],
    dir_format: str = "path",
    reader: str = "",
    kinds: tuple[str, ...] = KINDS,
    on_round: Callable[[History], None] | None = None,
) -> Campaign:
    """Judge a released timeline server; as `run_http`. UsageError for a version that has no bundle here."""
    check_version(version)
    java = find_java()
    bundle = find_bundle(version, progress)
    return run_http(
        start_command(java, bundle),
        storage=storage,
        budget_s=budget_s,
        seed=seed,
        report_dir=report_dir,
        profile=profile,
        progress=progress,
        dir_format=dir_format,
        reader=reader,
        sut_name=f"hudi:{version}",
        sut_version=version,
        kinds=kinds,
        on_round=on_round,
    )


def check_version(version: str) -> None:
    """UsageError for a version that was not tried."""
    if version not in VERSIONS:
        raise UsageError(f"--sut hudi:{version} has no bundle for Spark 3.5 here; write hudi: and {_either(VERSIONS)}")


def start_command(java: str, bundle: Path) -> str:
    """The command that starts the timeline server, with placeholders."""
    class_path = os.pathsep.join((str(bundle), str(spark_home() / "jars" / "*")))
    launcher = str(files("marker_sim.sut") / LAUNCHER)
    words = shlex.join([java, *_QUIET, "-cp", class_path, launcher])
    return f"{words} -p {{port}} --enable-marker-requests -mbt {{threads}} -mbi {{interval_ms}} -mdp 4 -st MEMORY"


def find_java() -> str:
    """The path of a Java that is new enough: JAVA_HOME's, else the one on PATH; HarnessError says how to get it."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    how = f"install a JDK {JAVA_MIN} or later (Debian: openjdk-{JAVA_MIN}-jdk-headless) and put java on PATH"
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME is {home!r} and has no bin/java" if home else "there is no java on PATH"
        raise HarnessError(f"the Hudi timeline server needs Java and {where}; {how}")
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{java} -version did not answer ({error}); {how}") from error
    number = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if number is None or int(number[1]) < JAVA_MIN:
        shown = (said.stderr + said.stdout).strip().splitlines()[:1]
        raise HarnessError(f"{java} is {' '.join(shown) or 'no Java'}, which is too old; {how}")
    return java


def spark_home() -> Path:
    """Where PySpark lives; HarnessError says how to get it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise HarnessError(
            "the Hudi timeline server needs the jars of PySpark 3.5, which is not installed; install it with"
            " pip install 'marker-sim[hudi]'"
        )
    return Path(spec.origin).parent


def cache_directory() -> Path:
    """Where bundles are kept: MARKER_SIM_CACHE, else ~/.cache/marker-sim."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "marker-sim"


def cached_bundle(version: str) -> Path | None:
    """The bundle of a version when it is in the cache."""
    path = cache_directory() / "jars" / f"{COORDINATES.replace(':', '_')}-{version}.jar"
    return path if path.is_file() else None


def find_bundle(version: str, progress: Callable[[str], None]) -> Path:
    """The bundle of a version, resolved through PySpark's resolver when the cache has none; else HarnessError."""
    check_version(version)
    found = cached_bundle(version)
    if found is not None:
        return found
    home, cache = spark_home(), cache_directory()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _only_one(cache / "lock"):
            found = cached_bundle(version)
            if found is None:
                progress(f"fetching the bundle of Hudi {version} into {cache} (once)")
                said = _resolve(home, cache / "ivy", version)
                fetched = cache / "ivy" / "jars" / f"{COORDINATES.replace(':', '_')}-{version}.jar"
                if not fetched.is_file():
                    raise HarnessError(_unresolved(version, said))
                found = _keep(fetched, cache / "jars")
    except OSError as error:
        raise HarnessError(
            f"the cache {cache} cannot be used ({error.strerror or error}); free space there or set {CACHE_VARIABLE}"
        ) from error
    return found


def _resolve(home: Path, ivy: Path, version: str) -> str:
    """Run spark-submit with an empty program, which resolves the packages first; what it said."""
    ivy.mkdir(parents=True, exist_ok=True)
    empty = ivy / "empty.py"
    empty.write_text("")
    words = [str(home / "bin" / "spark-submit"), "--master", "local[1]", "--packages", f"{COORDINATES}:{version}"]
    words += ["--conf", f"spark.jars.ivy={ivy}", str(empty)]
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=RESOLVE_TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"the bundle of Hudi {version} was not resolved in {RESOLVE_TIMEOUT_S:.0f} s") from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, 9)
            process.wait(10.0)
    return said


def _keep(fetched: Path, jars: Path) -> Path:
    """Move a bundle to where it is looked for, whole or not at all."""
    jars.mkdir(parents=True, exist_ok=True)
    target = jars / fetched.name
    fetched.replace(target)
    return target


def _unresolved(version: str, said: str) -> str:
    words = ("unresolved dependency", "not found", "exception", "error")
    lines = [line.strip() for line in said.splitlines() if any(word in line.lower() for word in words)]
    causes = re.findall(r"\(([\w.]+Exception: [^()]*)\)", said)
    why = causes[0] if causes else (lines[-1][:200] if lines else "the resolver said nothing")
    return (
        f"the bundle {COORDINATES}:{version} cannot be resolved: {why}; check the network and the repositories"
        f" that Spark's resolver asks, or put the jar into {cache_directory() / 'jars'} yourself"
    )


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """One resolver at a time on this machine; the lock dies with its process."""
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
