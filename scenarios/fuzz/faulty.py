"""The reference's timeline server with one fault, so that the fuzzer can be seen to find it.

python -m scenarios.fuzz.faulty FAULT serve ...     everything after FAULT is for `marker-sim`
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from marker_sim import names
from marker_sim.cli import main
from marker_sim.markers import batches, files, server
from marker_sim.seams import Runtime, Storage
from marker_sim.serve import app, bases
from properties.faces.markers import Created

TOO_LONG_S = 3600.0


def replaced(module: object, name: str, value: object) -> None:
    """Put something else under a name that is there."""
    assert hasattr(module, name), name
    setattr(module, name, value)


def no_base() -> None:
    """Serves every directory of the host."""
    wanted = bases.locate

    def locate(text: str, allowed: tuple[bases.Located, ...]) -> bases.Located:
        try:
            return wanted(text, allowed)
        except bases.Refusal as refusal:
            found = re.search(r"/.*/\.hoodie/\.temp/[^/]+\Z", text)
            if refusal.status != 403 or found is None:
                raise
            return bases.Located(True, allowed[0].root, os.path.relpath(found[0], allowed[0].root))

    replaced(app, "locate", locate)


def splits_names() -> None:
    """Takes a name with line breaks, which are several names when they are read again."""
    checked = names.check_marker_name
    replaced(server, "check_marker_name", lambda name: checked(name.replace("\n", "x")))


def early_true() -> None:
    """Answers true and forgets every eighth name instead of writing it."""
    encode = names.encode_names
    replaced(batches, "encode_names", lambda fresh: encode(name for name in fresh if len(name) % 8))


def silent_on_bad_text() -> None:
    """Never answers a request with bytes that are no text."""
    decode = app.decode

    def stuck(raw: bytes) -> str:
        try:
            return decode(raw)
        except ValueError:
            time.sleep(TOO_LONG_S)
            raise

    replaced(app, "decode", stuck)


def replaces_bad_text() -> None:
    """Takes bytes that are no text for question marks, so that two names become one."""
    decode = app.decode
    replaced(app, "decode", lambda raw: decode(re.sub(rb"%[89A-Fa-f][0-9A-Fa-f]", b"?", raw)))


def twice() -> None:
    """Tells two creates of one name that they were the first."""
    replaced(batches.DirectoryState, "_known_answer", lambda self, waiter: Created.CREATED)


def follows_links() -> None:
    """Deletes what the links of a marker directory lead to."""

    def delete_directory(storage: Storage, runtime: Runtime, directory: str, at_once: int) -> bool:
        root = Path(getattr(getattr(storage, "_inner", storage), "_root", "/"))
        there = (root / directory).exists()
        for folder, _, found in os.walk(root / directory, followlinks=True):
            for name in found:
                Path(folder, name).unlink()
        shutil.rmtree(root / directory, ignore_errors=True)
        return there

    replaced(server, "delete_directory", delete_directory)


def skips_what_fails() -> None:
    """Lists what it could read and says nothing of the rest."""
    read = files.read_directory

    def some(storage: Storage, runtime: Runtime, directory: str) -> Any:
        try:
            return read(storage, runtime, directory)
        except ValueError:
            return files.Contents({}, ())

    replaced(server, "read_directory", some)


def dies() -> None:
    """Ends when a name has a sign that is not ASCII."""

    def check(name: str) -> None:
        if not name.isascii():
            os._exit(1)
        names.check_marker_name(name)

    replaced(server, "check_marker_name", check)


FAULTS = {
    fault.__name__.replace("_", "-"): fault
    for fault in (no_base, splits_names, early_true, silent_on_bad_text, replaces_bad_text, twice, follows_links, dies)
} | {"skips-what-fails": skips_what_fails}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    sys.exit(main(sys.argv[2:]))
