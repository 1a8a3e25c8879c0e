"""A bundle of Hudi in which "names glued together after a restart" (docs/findings.md) is mended, as by a maintainer.

    python scenarios/by_hand/hudi_mended.py BUNDLE.jar MENDED.jar
    marker-sim verify --sut hudi:MENDED.jar --storage local --budget 90s --expect hudi-1.2.0-local

`MarkerDirState.syncMarkersFromFileSystem` joins the names that it reads by `StringUtils.join(",", names)`. In the copy
this one call goes to a class of our own, which ends each name with a line end. It needs a JDK 17; tried with 1.2.0.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from properties.faces.surroundings import find_java

FOLDER = "org/apache/hudi/timeline/service/handlers/marker"
BROKEN = f"{FOLDER}/MarkerDirState.class"
CALLED, OURS = "org/apache/hadoop/util/StringUtils", f"{FOLDER}/NamesAsLines"
SOURCE = """
package org.apache.hudi.timeline.service.handlers.marker;

public final class NamesAsLines {
    public static String join(CharSequence ignored, Iterable<?> names) {
        StringBuilder lines = new StringBuilder();
        for (Object name : names) {
            lines.append(name).append('\\n');
        }
        return lines.toString();
    }
}
"""


def mend(bundle: Path, mended: Path) -> None:
    """Write a copy of a bundle in which that call goes to our class; AssertionError when the class has no such call."""
    with zipfile.ZipFile(bundle) as jar:
        code = jar.read(BROKEN)
    assert code.count(_constant(CALLED)) == 1, f"{BROKEN} of {bundle} does not call {CALLED}"
    shutil.copyfile(bundle, mended)
    with zipfile.ZipFile(mended, "a", zipfile.ZIP_DEFLATED) as jar:
        jar.filelist.remove(jar.NameToInfo.pop(BROKEN))  # Its bytes stay, and nothing points to them any more.
        jar.writestr(BROKEN, code.replace(_constant(CALLED), _constant(OURS)))
        jar.writestr(f"{OURS}.class", _compiled())


def _constant(name: str) -> bytes:
    """A name as the pool of constants of a class has it."""
    return struct.pack(">BH", 1, len(name)) + name.encode()


def _compiled() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "NamesAsLines.java"
        source.write_text(SOURCE, encoding="utf-8")
        words = [find_java(), "--module", "jdk.compiler/com.sun.tools.javac.Main", "--release", "11", "-d", scratch]
        subprocess.run([*words, str(source)], check=True)
        return (Path(scratch) / f"{OURS}.class").read_bytes()


if __name__ == "__main__":
    mend(Path(sys.argv[1]), Path(sys.argv[2]))
