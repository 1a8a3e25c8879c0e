"""The real Hudi timeline server, of a released version or a locally built bundle: class path and start command.

The bundle `hudi-spark3.5-bundle_2.12` holds `org.apache.hudi.timeline.service.TimelineService`; Spark's own jars, which
PySpark brings along, are the rest of the class path, and for S3 Hadoop's S3A (`hadoop-aws` and Amazon's SDK, as for
Spark 3.5) with the settings in `jvm/s3a/core-site.xml`, which takes endpoint and credentials from the environment. The
`main` of the service returns at once and its threads are daemons, so a launcher of a few lines keeps the JVM alive.
Source: tried with 0.15.0, 1.0.2, 1.1.1 and 1.2.0 on Java 17.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from marker_sim.errors import UsageError
from marker_sim.reading import either
from marker_sim.surroundings.requirements import find_java, spark_home
from marker_sim.targets.http import HttpTarget, check_packages, check_surroundings
from marker_sim.targets.jvm.bundles import BuiltBundle, Jars, is_path, read_bundle
from marker_sim.targets.target import OF_WRITERS, SERVERS, CampaignRequest, Target, TargetCapabilities

NAME = "hudi"
VERSIONS = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"
S3A = Jars(
    what="S3A of Hadoop 3.3.4",
    coordinates=("org.apache.hadoop:hadoop-aws:3.3.4", "com.amazonaws:aws-java-sdk-bundle:1.12.262"),
)
LAUNCHER = "TimelineServiceLauncher.java"
STORAGE_LAUNCHER = "StorageTimelineServiceLauncher.java"
TOLD_ITS_STORAGE = "0."  # Servers of these versions have one storage for all paths, by default the local one.
SETTINGS = "s3a"
_QUIET = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8")


OF_HUDI = TargetCapabilities(
    profile=NAME,
    world=SERVERS,
    modes=("timeline",),
    refuses={
        "start": ", whose command the kit composes; leave --start out",
        "identity": ", whose requests carry none; leave --identity out",
        "batch_threads": ", which the kit tells them; leave it out",
        **OF_WRITERS,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiTarget(HttpTarget):
    """The timeline server of a released version, or of a locally built bundle.

    built: that bundle, None for a released one.
    """

    can: TargetCapabilities = OF_HUDI
    at_once: int = 4
    ahead: bool = True
    built: Path | None = None

    def prepare(self, request: CampaignRequest, progress: Callable[[str], None]) -> None:
        """Check or fetch packages, Java, the bundle, the S3 client, an archive of classes, and the object store."""
        check_packages(self.sut, f"{NAME} on {request.storage}")
        self.command(request, progress)
        check_surroundings(request)

    def command(self, request: CampaignRequest, progress: Callable[[str], None]) -> str:
        """The command that starts the version's launcher, quickly where its classes can be archived."""
        from marker_sim.targets.jvm.java_start import quick_start  # It imports packages of HTTP targets.

        jars = find_jars(self.version, NAME, request.storage, progress, self.built)
        return quick_start(start_command(self.version, *jars), progress)


def parse_bundle(text: str, name: str, *, writes: bool = False) -> BuiltBundle | None:
    """The bundle in "name:VERSION" or "name:PATH", None for another name; UsageError when it is neither.

    writes: whether Spark has to write with it.
    """
    before, _, word = text.partition(":")
    if before != name:
        return None
    if is_path(word):
        return read_bundle(word, name, writes=writes)
    if not re.fullmatch(r"\d+(\.\d+)+([-.\w]*)", word):
        raise UsageError(
            f"--sut was given {text!r}; write {name}:VERSION, for example {name}:1.0.2, or {name}: and the path of a"
            " bundle's jar"
        )
    return BuiltBundle(sut=text, version=word)


def find_jars(
    version: str, name: str, storage: str, progress: Callable[[str], None], built: Path | None
) -> tuple[str, tuple[Path, ...], tuple[Path, ...]]:
    """Java, the bundle, and for S3 its client; HarnessError for what is missing."""
    if built is None:
        check_version(version, name)
    java = find_java()
    jars = bundle(version).find(progress) if built is None else (built,)
    return java, jars, S3A.find(progress) if storage == "s3" else ()


def check_version(version: str, name: str = "hudi") -> None:
    """UsageError for a version that the kit was not tested with."""
    if version not in VERSIONS:
        raise UsageError(
            f"--sut {name}:{version} has no bundle for Spark 3.5 here; write {name}: and {either(VERSIONS)}, or a path"
        )


def bundle(version: str) -> Jars:
    """The bundle of a version, in the cache or not; UsageError for an untested version."""
    check_version(version)
    return Jars(what=f"the bundle of Hudi {version}", coordinates=(f"{BUNDLE}:{version}",))


def start_command(version: str, java: str, jars: tuple[Path, ...], s3a: tuple[Path, ...] = ()) -> str:
    """The command that starts the timeline server, with placeholders; s3a: the S3A jars, if it needs them."""
    settings = (str(files("marker_sim.targets.jvm") / SETTINGS),) if s3a else ()
    class_path = os.pathsep.join((*map(str, jars), *settings, *map(str, s3a), str(spark_home() / "jars" / "*")))
    launcher = str(files("marker_sim.targets.jvm") / launcher_of(version, bool(s3a)))
    return service_command(java, class_path, launcher)


def launcher_of(version: str, on_s3: bool) -> str:
    """The file of the launcher, a resource of the package `jvm`."""
    return STORAGE_LAUNCHER if on_s3 and version.startswith(TOLD_ITS_STORAGE) else LAUNCHER


def service_command(java: str, class_path: str, launcher: str) -> str:
    """The command that starts the service from a launcher file, with placeholders."""
    words = shlex.join([java, *_QUIET, "-cp", class_path, launcher])
    told = " {storage}" if launcher.endswith(STORAGE_LAUNCHER) else ""
    return f"{words}{told} -p {{port}} --enable-marker-requests -mbt {{threads}} -mbi {{interval_ms}} -mdp 4 -st MEMORY"


def parse(text: str) -> Target | None:
    """The target of a text, None for a name that is not of this module; UsageError for a wrong version or path."""
    found = parse_bundle(text, NAME)
    return None if found is None else HudiTarget(sut=found.sut, version=found.version, built=found.jar)
