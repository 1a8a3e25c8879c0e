"""A locally built bundle of Hudi: a jar that is tested like released versions.

Its version is what its manifest says, else the Maven properties of the bundle, else the name of the file. What is
around it is the same as for released versions: Spark 3.5 for Scala 2.12 as PySpark brings it, and for S3 Hadoop's S3A.
"""

from __future__ import annotations

import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from marker_sim.errors import UsageError

SERVICE = "org/apache/hudi/timeline/service/TimelineService.class"
ADAPTER = "org/apache/spark/sql/adapter/Spark3_5Adapter.class"
BUILD = "mvn package -DskipTests -Dspark3.5 -Dscala-2.12 -pl packaging/hudi-spark-bundle -am"
_MANIFEST = "META-INF/MANIFEST.MF"
_PROPERTIES = re.compile(r"META-INF/maven/org\.apache\.hudi/([^/]*bundle[^/]*)/pom\.properties")
_VERSION_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltBundle:
    """A bundle, by its name in `--sut`.

    sut: that name, with the whole path, so that it can be run again from anywhere.
    jar: None for a released version.
    """

    sut: str
    version: str
    jar: Path | None = None


def is_path(word: str) -> bool:
    """Whether it is a path and not a version."""
    return os.sep in word or word.endswith(".jar") or (word != "" and Path(word).exists())


def read_bundle(word: str, name: str, *, writes: bool) -> BuiltBundle:
    """The bundle at a path; UsageError when there is none, or when it lacks a class that is needed.

    name: before the colon of `--sut`.
    writes: whether Spark writes with it, and not only its timeline server is started.
    """
    given, path = f"--sut was given {f'{name}:{word}'!r}", Path(os.path.abspath(os.path.expanduser(word)))
    what = f"write {name}: and the path of a bundle's jar"
    if path.is_dir():
        names = (each.name for each in path.glob("*hudi*bundle*.jar"))
        jars = sorted(each for each in names if not re.search(r"-(sources|tests|javadoc)\.jar$", each))
        there = f", for example {path / jars[0]}" if jars else ""
        raise UsageError(f"{given}, which is a folder; {what}{there}")
    if not path.exists():
        raise UsageError(f"{given}, and there is no file {path}; {what}, or {name}:VERSION for a released one")
    try:
        with zipfile.ZipFile(path) as jar:
            entries = frozenset(jar.namelist())
            version = _version(jar, entries) or path.stem
    except zipfile.BadZipFile as error:
        raise UsageError(f"{given}, which is no jar ({str(error).rstrip('.')}); {what}") from error
    except OSError as error:
        raise UsageError(f"{given}, which cannot be read ({error.strerror or error}); {what}") from error
    if SERVICE not in entries:
        raise UsageError(f"{given}, a jar without Hudi's timeline service ({SERVICE}); build the bundle: {BUILD}")
    if writes and ADAPTER not in entries:
        raise UsageError(f"{given}, a bundle for another Spark than 3.5 ({ADAPTER} is missing); build it: {BUILD}")
    artifact = next((found[1] for each in sorted(entries) if (found := _PROPERTIES.fullmatch(each))), "")
    if writes and artifact.endswith("_2.13"):
        raise UsageError(f"{given}, a bundle for Scala 2.13; PySpark 3.5 has Scala 2.12, so build it: {BUILD}")
    return BuiltBundle(sut=f"{name}:{path}", version=version, jar=path)


def _version(jar: zipfile.ZipFile, entries: frozenset[str]) -> str:
    """The version recorded in a jar, "" when there is none."""
    places = [(_MANIFEST, "Implementation-Version:")] if _MANIFEST in entries else []
    places += [(each, "version=") for each in sorted(entries) if _PROPERTIES.fullmatch(each)]
    for entry, key in places:
        lines = jar.read(entry).decode("utf-8", "replace").splitlines()
        said = next((line.removeprefix(key).strip() for line in lines if line.startswith(key)), "")
        if said:
            return said[:_VERSION_MAX]
    return ""
