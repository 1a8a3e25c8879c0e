"""Files with several names, links, and calls that make or exchange whole ones: effects as the kernel has them."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

from marker_sim.faults import FaultKind
from marker_sim.names import TEMP
from properties.real.door.fronted import FILE, IN_PLACE, PLACE, Run, at

OTHER = f"{PLACE}/MARKERS1"
NAMED_TWICE = f"""
{IN_PLACE}
write(b"a\\n")
os.link({FILE!r}, {OTHER!r})
file = os.open({FILE!r}, os.O_WRONLY | os.O_APPEND)
"""


def test_a_file_that_lost_the_name_it_was_opened_by_is_written_under_the_other_one(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.KILL, "write", 2, "after", r"MARKERS1$"))
    status, _ = run.python(f"{NAMED_TWICE}os.unlink({FILE!r})\nos.write(file, b'b\\n')\nos.write(file, b'c\\n')")
    assert status == -signal.SIGKILL and run.effects()[2:] == [
        ("put", OTHER, b"a\n"), ("delete", FILE, None), ("put", OTHER, b"a\nb\n"), ("put", OTHER, b"a\nb\nc\n")
    ]  # fmt: skip
    assert not run.front.unseen


def test_a_write_changes_every_name_of_its_file(runs: Callable[..., Run]) -> None:
    run = runs()
    assert run.python(f"{NAMED_TWICE}os.write(file, b'b\\n')\nopen({OTHER!r}, 'w').close()") == (0, "")
    assert run.effects()[3:] == [
        (how, path, data)
        for how, data in (("put", b"a\nb\n"), ("overwrite-begin", b""))
        for path in (FILE, OTHER)
    ]  # fmt: skip
    assert not run.front.unseen


def test_a_link_that_leads_out_and_a_file_that_moves_out_change_nothing_else(
    runs: Callable[..., Run], tmp_path: Path
) -> None:
    run = runs()
    out = str(tmp_path / "out")
    assert run.python(f"{NAMED_TWICE}os.link({FILE!r}, {out!r})\nos.rename({FILE!r}, {out + '2'!r})") == (0, "")
    assert run.effects()[3:] == [("delete", FILE, None)] and not run.front.unseen


def test_a_rename_between_two_names_of_a_file_does_nothing(runs: Callable[..., Run]) -> None:
    run = runs()
    run.python(f"{NAMED_TWICE}os.rename({FILE!r}, {OTHER!r})")
    assert len(run.effects()) == 3 and run.front.objects() == {FILE: b"a\n", OTHER: b"a\n"}
    assert not run.front.unseen


def test_a_marker_file_that_is_a_link_holds_what_it_leads_to(runs: Callable[..., Run]) -> None:
    run = runs()
    said = run.python(
        f"{IN_PLACE}os.symlink({'../../../../names'!r}, {FILE!r})\nwrite(b'a\\n')\n"
        "open('names', 'ab', 0).write(b'b\\n')\nopen('new', 'wb', 0).write(b'c\\n')\n"
        f"os.rename('new', 'names')\nos.rename({FILE!r}, {OTHER!r})\nos.unlink('names')\nos.unlink({OTHER!r})"
    )
    assert said == (0, "")
    assert [(how, path, data) for how, path, data in run.effects() if path in (FILE, OTHER)] == [
        ("put", FILE, b""), ("put", FILE, b"a\n"), ("put", FILE, b"a\nb\n"),
        ("put", FILE, b"c\n"), ("put", OTHER, b"c\n"), ("delete", FILE, None), ("delete", OTHER, None),
    ]  # fmt: skip
    assert not run.front.unseen


EXCHANGES = f"""
import ctypes, os
os.makedirs("t{TEMP}2")
os.makedirs({PLACE!r})
open("t{TEMP}2/MARKERS0", "wb", 0).write(b"two\\n")
open({OTHER!r}, "wb", 0).write(b"one\\n")
assert ctypes.CDLL(None).renameat2(-100, b"t{TEMP}2", -100, {PLACE.encode()!r}, 2) == 0
"""


def test_directories_that_are_exchanged_have_each_other_s_files_and_no_others(runs: Callable[..., Run]) -> None:
    run = runs()
    assert run.python(EXCHANGES) == (0, "")
    assert run.effects()[4:] == [
        ("put", FILE, b"two\n"), ("delete", OTHER, None),
        ("put", f"t{TEMP}2/MARKERS1", b"one\n"), ("delete", f"t{TEMP}2/MARKERS0", None),
    ]  # fmt: skip
    assert not run.front.unseen


def test_a_file_made_by_mknod_is_put(runs: Callable[..., Run]) -> None:
    run = runs(at(FaultKind.KILL, "put", 2))
    status, _ = run.python(
        f"import os, stat\nos.makedirs({PLACE!r})\nos.mknod({PLACE!r} + '/pipe', stat.S_IFIFO | 0o600)\n"
        f"os.mknod({FILE!r})\nos.mknod({OTHER!r}, stat.S_IFREG | 0o600)"
    )
    assert status == -signal.SIGKILL and run.effects() == [("put", FILE, b"")]
