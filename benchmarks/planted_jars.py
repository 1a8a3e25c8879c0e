"""Hudi's jars with one source file changed, as a folder that `--sut hudi-java:FOLDER` accepts.

The changed classes are in the client's jar, which comes first on the class path. Needs javac, and fetches Hudi's
sources and Lombok, which they are compiled with, into the cache of marker-sim.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from marker_sim.surroundings.files import cache_directory
from marker_sim.targets.hudi import bundle
from marker_sim.targets.hudi_java import client
from marker_sim.targets.jvm.bundles import CENTRAL, Jars

LIST = Path(__file__).with_name("planted_writers.toml")
FUTURES_LIST = Path(__file__).with_name("planted_futures.toml")
LOMBOK = Jars(what="Lombok", coordinates=("org.projectlombok:lombok:1.18.36",))
# What the bundle has under another name than the sources.
RELOCATED = {"import com.codahale.": "import org.apache.hudi.com.codahale."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One planted defect. changes: what is replaced in its source file, and by what."""

    name: str
    room: str
    artifact: str
    file: str
    breaks: tuple[str, ...]
    changes: tuple[tuple[str, str], ...]


def defects(path: Path) -> tuple[str, tuple[Defect, ...]]:
    """The version of Hudi and its planted defects in a list."""
    told = tomllib.loads(path.read_text())
    return told["version"], tuple(
        Defect(
            name=each["name"], room=each["class"], artifact=each["artifact"], file=each["file"],
            breaks=tuple(each["breaks"]), changes=tuple((one["old"], one["new"]) for one in each["change"]),
        )
        for each in told["defect"]
    )  # fmt: skip


def sources(artifact: str, version: str) -> Path:
    """The jar with the sources of an artifact, fetched once; AssertionError when it is not what its sum says."""
    path = cache_directory() / "jars" / f"org.apache.hudi_{artifact}-{version}-sources.jar"
    if not path.is_file():
        url = f"{CENTRAL}/org/apache/hudi/{artifact}/{version}/{artifact}-{version}-sources.jar"
        with urlopen(url, timeout=60) as answer, urlopen(f"{url}.sha1", timeout=60) as digest:
            body, wanted = answer.read(), digest.read().decode().split()[0]
        assert hashlib.sha1(body, usedforsecurity=False).hexdigest() == wanted, f"{url} is not as its .sha1 says"
        path.with_suffix(".part").write_bytes(body)
        path.with_suffix(".part").replace(path)
    return path


def changed(text: str, changes: Sequence[tuple[str, str]], name: str) -> str:
    """A source with some pieces replaced, each of which is there once."""
    for old, new in changes:
        assert text.count(old.strip("\n")) == 1, f"{name}: not once in its source: {old}"
        text = text.replace(old.strip("\n"), new.strip("\n"))
    for old, new in RELOCATED.items():
        text = text.replace(old, new)
    return text


def build(version: str, name: str, files: Sequence[Defect], folder: Path) -> Path:
    """A folder with the bundle and a client whose jar has the changed classes of some source files; made once."""
    made = folder / f"hudi-java-client-{version}.jar"
    if made.is_file() and all(made.stat().st_mtime > path.stat().st_mtime for path in (LIST, FUTURES_LIST)):
        return folder
    import pyspark

    spark = Path(pyspark.__file__).parent / "jars"
    (lombok,), (client_jar,), (bundle_jar,) = (jars.find(print) for jars in (LOMBOK, client(version), bundle(version)))
    with tempfile.TemporaryDirectory() as scratch:
        written, classes = [], Path(scratch) / "classes"
        for each in files:
            text = zipfile.Path(sources(each.artifact, version), each.file).read_text(encoding="utf-8")
            path = Path(scratch) / "java" / each.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(changed(text, each.changes, name), encoding="utf-8")
            written.append(str(path))
        subprocess.run(
            ["javac", "-nowarn", "-Xlint:none", "--release", "11", "-g", *_processors(),
             "-processorpath", str(lombok), "-cp", f"{lombok}:{bundle_jar}:{client_jar}:{spark}/*",
             "-d", str(classes), *written],
            check=True,
        )  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / f"hudi-spark3.5-bundle_2.12-{version}.jar"
        link.unlink(missing_ok=True)
        link.symlink_to(bundle_jar)
        part = made.with_suffix(".part")
        shutil.copyfile(client_jar, part)
        with zipfile.ZipFile(part, "a", zipfile.ZIP_DEFLATED) as jar:
            for path in sorted(classes.rglob("*.class")):
                jar.write(path, path.relative_to(classes).as_posix())
        part.replace(made)
    return folder


def _processors() -> list[str]:
    """What javac must be told to run annotation processors from Java 23 on."""
    words = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True).stdout.split()
    return ["-proc:full"] if int(words[-1].partition(".")[0]) >= 23 else []
