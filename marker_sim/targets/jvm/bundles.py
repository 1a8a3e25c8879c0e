"""Jars from Maven Central, fetched once into a cache, and bundles of Hudi built by the user.

The cache is MARKER_SIM_CACHE, else ~/.cache/marker-sim; `jars/` below it has each jar whole or not at all, those that
are named and nothing of their dependencies. MARKER_SIM_MAVEN names another repository of the same layout. Nothing else
is asked, the user's `~/.m2` neither: what a build has left there is made for that build.

A bundle that was built is tried as released versions are. Its version is what its manifest says, else the Maven
properties of the bundle, else the name of the file. What is around it is the same as for released versions: Spark 3.5
for Scala 2.12 as PySpark brings it, and for S3 Hadoop's S3A.
"""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from marker_sim.errors import HarnessError, UsageError
from marker_sim.surroundings.files import CACHE_VARIABLE, cache_directory, held

CENTRAL = "https://repo1.maven.org/maven2"
REPOSITORY_VARIABLE = "MARKER_SIM_MAVEN"
SILENCE_S = 60.0
PIECE_BYTES = 1 << 20
SERVICE = "org/apache/hudi/timeline/service/TimelineService.class"
ADAPTER = "org/apache/spark/sql/adapter/Spark3_5Adapter.class"
CLIENT = "org/apache/hudi/client/HoodieJavaWriteClient.class"
BUILD = "mvn package -DskipTests -Dspark3.5 -Dscala-2.12 -pl packaging/hudi-spark-bundle -am"
BUILD_BOTH = BUILD.replace(" -am", ",hudi-client/hudi-java-client -am")
# The jars for the Java client, and where Maven leaves each.
_BUILT = {
    "hudi-java-client-*.jar": "hudi-client/hudi-java-client/target",
    "hudi-spark3.5-bundle_2.12-*.jar": "packaging/hudi-spark-bundle/target",
}
_MANIFEST = "META-INF/MANIFEST.MF"
_PROPERTIES = re.compile(r"META-INF/maven/org\.apache\.hudi/([^/]*bundle[^/]*)/pom\.properties")
_VERSION_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    """Jars that are needed together.

    what: their name in sentences.
    coordinates: "group:artifact:version" of each.
    """

    what: str
    coordinates: tuple[str, ...]

    def paths(self) -> tuple[Path, ...]:
        """The path of each jar in the cache."""
        return tuple(cache_directory() / "jars" / _file_name(jar) for jar in self.coordinates)

    def cached(self) -> tuple[Path, ...]:
        """The paths when all jars are in the cache, else none."""
        paths = self.paths()
        return paths if all(path.is_file() for path in paths) else ()

    def find(self, progress: Callable[[str], None]) -> tuple[Path, ...]:
        """The paths of the jars, downloaded if the cache lacks one; HarnessError says why they are unavailable."""
        cache = cache_directory()
        found = self.cached()
        if found:
            return found
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with held(cache / "lock", wait=True):
                found = self.cached()
                return found or self._fetch(cache, progress)
        except OSError as error:
            raise HarnessError(
                f"the cache {cache} cannot be used ({error.strerror or error}); free space there or set"
                f" {CACHE_VARIABLE}"
            ) from error

    def _fetch(self, cache: Path, progress: Callable[[str], None]) -> tuple[Path, ...]:
        progress(f"fetching {self.what} into {cache} (once)")
        (cache / "jars").mkdir(parents=True, exist_ok=True)
        try:
            for jar, path in zip(self.coordinates, self.paths(), strict=True):
                if not path.is_file():
                    _fetch_jar(_url(jar), path)
        except ConnectionError as error:
            raise HarnessError(
                f"{self.what} cannot be fetched: {error}; check the network, name another repository by"
                f" {REPOSITORY_VARIABLE}, or put {' and '.join(path.name for path in self.paths())} into"
                f" {cache / 'jars'} yourself"
            ) from error
        return self.paths()


def _file_name(jar: str) -> str:
    """The name in the cache: group_artifact-version.jar."""
    group, artifact, version = jar.split(":")
    return f"{group}_{artifact}-{version}.jar"


def _url(jar: str) -> str:
    group, artifact, version = jar.split(":")
    repository = (os.environ.get(REPOSITORY_VARIABLE) or CENTRAL).rstrip("/")
    return f"{repository}/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar"


def _fetch_jar(url: str, path: Path) -> None:
    """Download a jar and compare its SHA-1 before naming it; ConnectionError when it is unavailable."""
    part, digest = path.with_suffix(".part"), hashlib.sha1(usedforsecurity=False)
    try:
        with part.open("wb") as file:
            for piece in _pieces(url):
                digest.update(piece)
                file.write(piece)
        wanted = b"".join(_pieces(f"{url}.sha1")).decode("ascii", "replace").split()
        if wanted[:1] != [digest.hexdigest()]:
            raise ConnectionError(f"{url} was not received as its .sha1 says")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _pieces(url: str) -> Iterator[bytes]:
    # Imported here: every command imports this module for the table of targets, but few download.
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=SILENCE_S) as answer:
            while piece := answer.read(PIECE_BYTES):
                yield piece
    except (OSError, HTTPException, ValueError) as error:
        raise ConnectionError(f"{url}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltBundle:
    """A bundle, by its name in `--sut`.

    sut: that name, with the whole path, so that it can be run again from anywhere.
    jar: None for a released version. client: the jar of the Java client that was built with it, None without one.
    """

    sut: str
    version: str
    jar: Path | None = None
    client: Path | None = None


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
        jars = sorted(each.name for each in path.glob("*hudi*bundle*.jar") if _is_main(each.name))
        there = f", for example {path / jars[0]}" if jars else ""
        raise UsageError(f"{given}, which is a folder; {what}{there}")
    if not path.exists():
        raise UsageError(f"{given}, and there is no file {path}; {what}, or {name}:VERSION for a released one")
    try:
        entries, version = _look_into(path)
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
    return BuiltBundle(sut=f"{name}:{path}", version=version or path.stem, jar=path)


def read_build(word: str, name: str) -> BuiltBundle:
    """The bundle and the Java client in a folder, or where Maven leaves them below the folder of Hudi's source.

    name: before the colon of `--sut`. UsageError when one of the two is missing, is there twice, or is no such jar.
    """
    given, folder = f"--sut was given {f'{name}:{word}'!r}", Path(os.path.abspath(os.path.expanduser(word)))
    jars = " and ".join(_BUILT)
    what = f"write {name}: and a folder with {jars}, or that of Hudi's source after its build ({BUILD_BOTH})"
    if not folder.is_dir():
        raise UsageError(f"{given}, and {folder} is {'no folder' if folder.exists() else 'not there'}; {what}")
    found = list[Path]()
    for pattern, place in _BUILT.items():
        there = [jar for where in (folder, folder / place) for jar in sorted(where.glob(pattern)) if _is_main(jar.name)]
        if len(there) != 1:
            named = " and ".join(str(jar.relative_to(folder)) for jar in there) or "none"
            raise UsageError(f"{given}, where one {pattern} is needed and there is {named}; {what}")
        found += there
    client, bundle = found[0], read_bundle(str(found[1]), name, writes=True)
    try:
        entries, version = _look_into(client)
    except (OSError, zipfile.BadZipFile) as error:
        raise UsageError(f"{given}, where {client.name} cannot be read ({error}); {what}") from error
    if CLIENT not in entries:
        raise UsageError(f"{given}, where {client.name} has no {CLIENT}; {what}")
    if version not in ("", bundle.version):
        raise UsageError(f"{given}, with a client of {version} and a bundle of {bundle.version}; build both at once")
    return replace(bundle, sut=f"{name}:{folder}", client=client)


def _is_main(name: str) -> bool:
    """Whether a jar is neither sources nor tests nor documentation."""
    return not re.search(r"-(sources|tests|javadoc)\.jar$", name)


def _look_into(path: Path) -> tuple[frozenset[str], str]:
    """The names of a jar's entries, and the version recorded in it, "" when there is none."""
    with zipfile.ZipFile(path) as jar:
        entries = frozenset(jar.namelist())
        places = [(_MANIFEST, "Implementation-Version:")] if _MANIFEST in entries else []
        places += [(each, "version=") for each in sorted(entries) if _PROPERTIES.fullmatch(each)]
        for entry, key in places:
            lines = jar.read(entry).decode("utf-8", "replace").splitlines()
            said = next((line.removeprefix(key).strip() for line in lines if line.startswith(key)), "")
            if said:
                return entries, said[:_VERSION_MAX]
    return entries, ""
