"""Jars from Maven Central, downloaded once into a cache: only those named, without their dependencies.

The cache is MARKER_SIM_CACHE, else ~/.cache/marker-sim; `jars/` below it has each jar whole or not at all.
MARKER_SIM_MAVEN names another repository of the same layout. Nothing else is asked, the user's `~/.m2` neither: what a
build has left there is made for that build.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from marker_sim.cache import CACHE_VARIABLE, cache_directory
from marker_sim.errors import HarnessError
from marker_sim.files import held
from marker_sim.requirements import need

CENTRAL = "https://repo1.maven.org/maven2"
REPOSITORY_VARIABLE = "MARKER_SIM_MAVEN"
SILENCE_S = 60.0
PIECE_BYTES = 1 << 20


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


def spark_home() -> Path:
    """The directory of PySpark; HarnessError says how to get it."""
    need("Hudi", "pyspark")
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


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
    try:
        with urlopen(url, timeout=SILENCE_S) as answer:
            while piece := answer.read(PIECE_BYTES):
                yield piece
    except (OSError, HTTPException, ValueError) as error:
        raise ConnectionError(f"{url}: {error}") from error
