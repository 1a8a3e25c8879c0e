"""Jars from Maven repositories, fetched once into a cache by the resolver that PySpark brings along.

The cache is MARKER_SIM_CACHE, else ~/.cache/marker-sim; what is wanted lies in `jars/` below it, whole or not at all.
Nothing of Spark is started but its resolver.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from marker_sim.cache import CACHE_VARIABLE, cache_directory
from marker_sim.errors import HarnessError
from marker_sim.files import held
from marker_sim.requirements import need
from marker_sim.supervisor import run_to_end

RESOLVE_TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    """Jars that are wanted together.

    what: their name in sentences.
    coordinates: "group:artifact:version" of each.

    asked: those of which the resolver is told; it finds the others as their dependencies.
    """

    what: str
    coordinates: tuple[str, ...]
    asked: tuple[str, ...]

    def paths(self) -> tuple[Path, ...]:
        """Where each one lies when it is in the cache."""
        return tuple(cache_directory() / "jars" / _file_name(jar) for jar in self.coordinates)

    def cached(self) -> tuple[Path, ...]:
        """The jars when all of them are in the cache, else none."""
        paths = self.paths()
        return paths if all(path.is_file() for path in paths) else ()

    def find(self, progress: Callable[[str], None]) -> tuple[Path, ...]:
        """The jars, resolved when the cache lacks one; HarnessError says why they cannot be had."""
        cache = cache_directory()
        found = self.cached()
        if found:
            return found
        home = spark_home()
        try:
            cache.mkdir(parents=True, exist_ok=True)
            with held(cache / "lock", wait=True):
                found = self.cached()
                return found or self._fetch(home, cache, progress)
        except OSError as error:
            raise HarnessError(
                f"the cache {cache} cannot be used ({error.strerror or error}); free space there or set"
                f" {CACHE_VARIABLE}"
            ) from error

    def _fetch(self, home: Path, cache: Path, progress: Callable[[str], None]) -> tuple[Path, ...]:
        progress(f"fetching {self.what} into {cache} (once)")
        said = _resolve(home, cache / "ivy", self)
        fetched = [cache / "ivy" / "jars" / path.name for path in self.paths()]
        if not all(path.is_file() for path in fetched):
            raise HarnessError(_unresolved(self, said))
        (cache / "jars").mkdir(parents=True, exist_ok=True)
        for path, target in zip(fetched, self.paths(), strict=True):
            path.replace(target)
        return self.paths()


def spark_home() -> Path:
    """Where PySpark lives; HarnessError says how to get it."""
    need("Hudi", "pyspark")
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _file_name(jar: str) -> str:
    """As Ivy names it: group_artifact-version.jar."""
    group, artifact, version = jar.split(":")
    return f"{group}_{artifact}-{version}.jar"


def _resolve(home: Path, ivy: Path, jars: Jars) -> str:
    """Run spark-submit with an empty program, which resolves the packages first; what it said."""
    ivy.mkdir(parents=True, exist_ok=True)
    empty = ivy / "empty.py"
    empty.write_text("")
    words = [str(home / "bin" / "spark-submit"), "--master", "local[1]", "--packages", ",".join(jars.asked)]
    words += ["--conf", f"spark.jars.ivy={ivy}", str(empty)]
    environment = {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    late = f"{jars.what} was not resolved in"
    return run_to_end(words, deadline_s=RESOLVE_TIMEOUT_S, late=late, environment=environment)[1]


def _unresolved(jars: Jars, said: str) -> str:
    words = ("unresolved dependency", "not found", "exception", "error")
    lines = [line.strip() for line in said.splitlines() if any(word in line.lower() for word in words)]
    causes = re.findall(r"\(([\w.]+Exception: [^()]*)\)", said)
    why = causes[0] if causes else (lines[-1][:200] if lines else "the resolver gave no output")
    return (
        f"{jars.what} ({', '.join(jars.asked)}) cannot be resolved: {why}; check the network and the repositories"
        f" that Spark's resolver asks, or put {' and '.join(path.name for path in jars.paths())} into"
        f" {cache_directory() / 'jars'} yourself"
    )
