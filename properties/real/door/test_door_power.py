"""What a loss of power leaves of what real processes did: by what they synced, in each of its ways."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from marker_sim.faults import FaultKind, When
from marker_sim.names import TYPE_FILE
from properties.faces.worlds import POWER
from properties.real.door.behind import program
from properties.real.door.fronted import FILE, PLACE, Run, at

GONE, NAMES, LENGTHS = "nothing kept", "names kept", "lengths kept"
WAYS = {GONE: (False, False), NAMES: (True, False), LENGTHS: (True, True)}
HELPERS = """
import os
def put(path, data, sync=True, flags=os.O_CREAT | os.O_TRUNC):
    file = os.open(path, os.O_WRONLY | flags)
    os.write(file, data)
    if sync: os.fsync(file)
    os.close(file)
def sync(path="."):
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)
"""
Files = dict[str, bytes]


def lost(run: Run, way: str) -> Files:
    """Take back what was not synced, the processes being gone; what is there then."""
    with run.recorder.lock:
        run.front.lose_power(*WAYS[way])
    return run.front.objects()


@pytest.fixture
def powered(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    opened: list[Run] = []

    def run(*faults: object) -> Run:
        opened.append(Run(tmp_path / f"root-{len(opened)}", *faults, power=True))  # type: ignore[arg-type]
        return opened[-1]

    yield run
    for each in opened:
        each.front.close()


ZEROS = b"\0\0\0"
# What a program does, and what is there after each way of a loss of power.
CASES: dict[str, tuple[Any, ...]] = {
    "nothing synced": ("put('a', b'abc', False)", {}, {"a": b""}, {"a": ZEROS}),
    "file synced and its directory not": ("put('a', b'abc')", {}, {"a": b"abc"}, {"a": b"abc"}),
    "directory synced and its file not": ("put('a', b'abc', False); sync()", {"a": b""}, {"a": b""}, {"a": ZEROS}),
    "both synced": ("put('a', b'abc'); sync()", *[{"a": b"abc"}] * 3),
    "fdatasync": (
        "file = os.open('a', os.O_CREAT | os.O_WRONLY); os.write(file, b'abc'); os.fdatasync(file); sync()",
        *[{"a": b"abc"}] * 3,
    ),
    "sync": (
        "put('a', b'abc', False); os.mkdir('d'); put('d/b', b'x', False); os.sync()",
        *[{"a": b"abc", "d/b": b"x"}] * 3,
    ),
    "syncfs": (
        "import ctypes; put('a', b'abc', False); file = os.open('.', os.O_RDONLY); ctypes.CDLL(None).syncfs(file)",
        *[{"a": b"abc"}] * 3,
    ),
    "O_SYNC": ("put('a', b'abc', False, os.O_CREAT | os.O_SYNC); sync()", *[{"a": b"abc"}] * 3),
    "O_DSYNC": ("put('a', b'abc', False, os.O_CREAT | os.O_DSYNC); sync()", *[{"a": b"abc"}] * 3),
    "RWF_DSYNC": (
        "file = os.open('a', os.O_CREAT | os.O_WRONLY); os.pwritev(file, [b'abc'], 0, os.RWF_DSYNC); sync()",
        *[{"a": b"abc"}] * 3,
    ),
    "rename over a file, nothing synced": (
        "put('a', b'old'); sync(); put('t', b'new', False); os.rename('t', 'a')",
        {"a": b"old"}, {"a": b""}, {"a": ZEROS},
    ),
    "rename over a file, the new one synced": (
        "put('a', b'old'); sync(); put('t', b'new'); os.rename('t', 'a')",
        {"a": b"old"}, {"a": b"new"}, {"a": b"new"},
    ),
    "rename over a file, both synced": (
        "put('a', b'old'); sync(); put('t', b'new'); os.rename('t', 'a'); sync()", *[{"a": b"new"}] * 3
    ),
    "deletion": ("put('a', b'abc'); sync(); os.unlink('a')", {"a": b"abc"}, {}, {}),
    "deletion, synced": ("put('a', b'abc'); sync(); os.unlink('a'); sync()", {}, {}, {}),
    "deletion, and another file of this name": (
        "put('a', b'abc'); sync(); os.unlink('a'); put('a', b'xyz')",
        {"a": b"abc"}, {"a": b"xyz"}, {"a": b"xyz"},
    ),
    "truncation": ("put('a', b'abcdef'); sync(); os.truncate('a', 2)", {"a": b"abcdef"}, {"a": b"ab"}, {"a": b"ab"}),
    "truncation of an open file, synced": (
        "put('a', b'abcdef'); sync(); file = os.open('a', os.O_RDWR); os.ftruncate(file, 2); os.fsync(file)",
        *[{"a": b"ab"}] * 3,
    ),
    "emptied and written again": (
        "put('a', b'abc'); sync(); put('a', b'xyzw', False)",
        {"a": b"abc"}, {"a": b""}, {"a": b"\0\0\0\0"},
    ),
    "append to a synced file": (
        "put('a', b'abc'); sync(); put('a', b'def', False, os.O_APPEND)",
        {"a": b"abc"}, {"a": b"abc"}, {"a": b"abc" + ZEROS},
    ),
    "written over": (
        "put('a', b'abc'); sync(); put('a', b'x', False, 0)", *[{"a": b"abc"}] * 3,
    ),
    "a second name": ("put('a', b'abc'); sync(); os.link('a', 'b')", {"a": b"abc"}, *[{"a": b"abc", "b": b"abc"}] * 2),
    "two names, and a write by one of them": (
        "put('a', b'abc'); os.link('a', 'b'); sync(); put('b', b'd', False, os.O_APPEND)",
        *[{"a": b"abc", "b": b"abc"}] * 2, {"a": b"abc\0", "b": b"abc\0"},
    ),
    "a directory": ("os.mkdir('d'); put('d/a', b'abc'); sync('d')", {}, *[{"d/a": b"abc"}] * 2),
    "a directory, synced": ("os.mkdir('d'); put('d/a', b'abc'); sync('d'); sync()", *[{"d/a": b"abc"}] * 3),
    "a directory removed": (
        "os.mkdir('d'); put('d/a', b'abc'); sync('d'); sync(); os.unlink('d/a'); os.rmdir('d')", {"d/a": b"abc"}, {}, {}
    ),
    "a directory removed, synced": (
        "os.mkdir('d'); put('d/a', b'abc'); sync('d'); sync(); os.unlink('d/a'); os.rmdir('d'); sync()", {}, {}, {}
    ),
    "a directory renamed": (
        "os.mkdir('d'); put('d/a', b'abc'); sync('d'); sync(); os.rename('d', 'e'); put('e/b', b'x'); sync('e')",
        {"d/a": b"abc", "d/b": b"x"}, *[{"e/a": b"abc", "e/b": b"x"}] * 2,
    ),
    "a rename between directories, of which one is synced": (
        "os.mkdir('d'); os.mkdir('e'); put('d/a', b'abc'); sync('d'); sync(); os.rename('d/a', 'e/a'); sync('d')",
        *[{"e/a": b"abc"}] * 3,
    ),
    "a rename between directories": (
        "os.mkdir('d'); os.mkdir('e'); put('d/a', b'abc'); sync('d'); sync(); os.rename('d/a', 'e/a')",
        {"d/a": b"abc"}, *[{"e/a": b"abc"}] * 2,
    ),
    "a link to a file": ("put('a', b'abc'); os.symlink('a', 'l'); sync()", *[{"a": b"abc", "l": b"abc"}] * 3),
    "a file without a name that gets one": (
        "file = os.open('.', os.O_TMPFILE | os.O_WRONLY); os.write(file, b'abc')\n"
        "os.link(f'/proc/self/fd/{file}', 'a', src_dir_fd=file); sync()",
        {"a": b""}, {"a": b""}, {"a": ZEROS},
    ),
    "a synced file without a name that gets one": (
        "file = os.open('.', os.O_TMPFILE | os.O_WRONLY); os.write(file, b'abc'); os.fsync(file)\n"
        "os.link(f'/proc/self/fd/{file}', 'a', src_dir_fd=file); sync()",
        *[{"a": b"abc"}] * 3,
    ),
    "a file from outside": (
        "import tempfile; path = tempfile.mkdtemp(dir=os.path.dirname(os.getcwd())) + '/a'\n"
        "put(path, b'abc'); os.rename(path, 'a'); sync()",
        *[{"a": b"abc"}] * 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_left_of_what_was_not_synced(powered: Callable[..., Run], case: str, way: str) -> None:
    run, (text, *left) = powered(), CASES[case]
    assert run.python(HELPERS + text) == (0, "")
    assert lost(run, way) == left[[*WAYS].index(way)]
    assert run.front.unseen == ()
    assert lost(run, way) == left[[*WAYS].index(way)], "what is there after a loss of power is on the disk"


C = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    int folder = open(".", O_RDONLY | O_DIRECTORY), sync_file = strchr(words[1], 'f') != 0;
    for (int n = 0; n < 2; n++) {
        int file = open("t", O_CREAT | O_EXCL | O_WRONLY, 0640);
        dprintf(file, "%d", n);
        if (sync_file) fsync(file);
        close(file);
        rename("t", "a");
        if (strchr(words[1], 'd') && !n) fsync(folder);
    }
    return 0;
}
"""


@pytest.mark.parametrize(
    ("synced", "left"),
    [("fd", (b"0", b"1", b"1")), ("f", (None, b"1", b"1")), ("d", (b"", b"", b"\0"))],
)
def test_a_program_in_c(
    powered: Callable[..., Run], tmp_path: Path, synced: str, left: tuple[bytes | None, ...]
) -> None:
    (tmp_path / "twice.c").write_text(C)
    built = program(tmp_path, "twice", "cc", "-o", "twice", "twice.c")
    for way, expected in zip(WAYS, left, strict=True):
        run = powered()
        assert run.play(built, synced) == (0, "")
        assert lost(run, way) == ({} if expected is None else {"a": expected})
        if expected is not None:
            assert (run.front.root / "a").stat().st_mode & 0o777 == 0o640


def test_names_of_one_file_stay_names_of_one_file(powered: Callable[..., Run]) -> None:
    run = powered()
    run.python(HELPERS + "put('a', b'abc'); os.link('a', 'b'); sync(); os.unlink('a')")
    assert lost(run, GONE) == {"a": b"abc", "b": b"abc"}
    assert run.python(HELPERS + "put('a', b'd', False, os.O_APPEND)", process="server-2") == (0, "")
    assert run.front.objects() == {"a": b"abcd", "b": b"abcd"}
    assert run.front.unseen == ()


MADE = (
    HELPERS
    + f"""
os.makedirs({PLACE!r})
for folder in ({PLACE!r}, "t/.hoodie/.temp", "t/.hoodie", "t", "."): sync(folder)
put({FILE!r}, b"name-1\\n"); sync({PLACE!r})
put({FILE!r}, b"name-2\\n", False, os.O_APPEND)
"""
)


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_taken_back_are_effects_of_the_power(powered: Callable[..., Run], when: When) -> None:
    run = powered(at(FaultKind.POWER_LOST, "write", 2, when, "MARKERS0"))
    run.struck = lambda: run.front.lose_power(False, False)
    assert run.python(MADE)[0] != 0
    effects = [event for event in run.recorder.events if event.kind == "effect"]
    own = [(event.operation, event.path, event.value) for event in effects if event.process == POWER]
    assert own == ([("put", FILE, b"name-1\n")] if when == "after" else [])
    assert run.front.objects() == {FILE: b"name-1\n"} and run.front.unseen == ()


def test_a_name_that_moves_back_into_another_file_is_never_in_neither(powered: Callable[..., Run]) -> None:
    run, other = powered(), f"{PLACE}/MARKERS1"
    text = MADE + f"put({other!r}, b'name-1\\n', False); os.unlink({FILE!r})"
    assert run.python(text) == (0, "")
    assert lost(run, GONE) == {FILE: b"name-1\n"}
    own = [event for event in run.recorder.events if event.process == POWER and event.kind == "effect"]
    assert [(event.operation, event.path) for event in own] == [("put", FILE), ("delete", other)]


def test_a_directory_that_is_taken_back_is_never_without_the_type_file_of_its_markers(
    powered: Callable[..., Run],
) -> None:
    run, made = powered(), f"{PLACE}/{TYPE_FILE}"
    assert run.python(f"{HELPERS}os.makedirs({PLACE!r}); put({made!r}, b'x'); put({FILE!r}, b'y')") == (0, "")
    assert lost(run, GONE) == {}
    own = [event for event in run.recorder.events if event.process == POWER and event.kind == "effect"]
    assert [(event.operation, event.path) for event in own] == [("delete", FILE), ("delete", made)]


def test_a_failed_fsync_syncs_nothing(powered: Callable[..., Run]) -> None:
    run = powered(at(FaultKind.IO_ERROR, "sync", 1))
    assert run.python(HELPERS + "try: put('a', b'abc')\nexcept OSError: pass\nsync()") == (0, "")
    assert lost(run, GONE) == {"a": b""}


def test_what_the_kit_removes_does_not_come_back(powered: Callable[..., Run]) -> None:
    run = powered()
    assert run.python(MADE) == (0, "")
    run.front.remove(PLACE, "outside-1")
    assert lost(run, GONE) == {}
    assert os.path.isdir(run.front.root / "t/.hoodie/.temp") and not os.path.exists(run.front.root / PLACE)


def test_a_program_in_go_syncs_as_others_do(powered: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(
        'package main\nimport "os"\nfunc main() {\n'
        '\tfile, _ := os.Create("t"); file.Write([]byte("abc")); file.Sync(); file.Close(); os.Rename("t", "a")\n'
        '\tif len(os.Args) > 1 { folder, _ := os.Open("."); folder.Sync() }\n}\n'
    )
    built = program(tmp_path, "main", "go", "build", "-o", "main", "main.go")
    for words, left in (((), {}), (("folder",), {"a": b"abc"})):
        run = powered()
        assert run.play(built, *words) == (0, "")
        assert lost(run, GONE) == left


STORES = f"""
import sys
sys.path[:] = {sys.path!r}
from pathlib import Path
from typing import Any
from marker_sim.seams import Condition, NotFound, PreconditionFailed
from marker_sim.storages.local import LocalStorage
storage, careless = LocalStorage(Path("."), fsync=True), LocalStorage(Path("."))
"""
A = f"{PLACE}/a.marker.CREATE"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("acts", "left"),
    [
        (f"storage.put({FILE!r}, b'a'); storage.put({FILE!r}, b'ab')", {FILE: b"ab"}),
        (
            f"storage.put({FILE!r}, b'ab', Condition.IF_ABSENT); storage.put({A!r}, b'', Condition.IF_ABSENT)",
            {FILE: b"ab", A: b""},
        ),
        (f"storage.overwrite({FILE!r}, b'ab')", {FILE: b"ab"}),
        (f"storage.put({FILE!r}, b'ab'); storage.put({A!r}, b''); storage.delete({FILE!r})", {A: b""}),
        (f"storage.put({FILE!r}, b'ab'); storage.delete({FILE!r})", {}),
        (f"careless.put({FILE!r}, b'ab'); storage.get({FILE!r})", {FILE: b"ab"}),
        (f"careless.put({A!r}, b''); storage.list({PLACE + '/'!r})", {A: b""}),
        (f"storage.put({FILE!r}, b'ab'); careless.delete({FILE!r}); storage.delete({FILE!r})", {}),
        (f"storage.put({FILE!r}, b'ab'); careless.delete({FILE!r}); storage.list({PLACE + '/'!r})", {}),
        (
            f"storage.put({FILE!r}, b'ab'); careless.delete({FILE!r})\n"
            f"try: storage.get({FILE!r})\nexcept NotFound: pass",
            {},
        ),
        (
            f"careless.put({A!r}, b'')\n"
            f"try: storage.put({A!r}, b'', Condition.IF_ABSENT)\nexcept PreconditionFailed: pass",
            {A: b""},
        ),
    ],
)
def test_what_a_storage_with_fsync_wrote_or_found_is_on_the_disk(
    powered: Callable[..., Run], acts: str, left: Files, way: str
) -> None:
    run = powered()
    assert run.python(STORES + acts) == (0, "")
    assert lost(run, way) == left
