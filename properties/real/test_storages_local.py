"""What a local directory as storage promises besides the contract: locks, kills, races, links, a full disk."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from marker_sim.seams import Condition, DiskFull, NotFound, PathRefused, Runtime, StorageError, StorageFailed
from properties.faces.markers import delete_directory
from properties.faces.storages import LOCK_FILE, HostLocks, LocalStorage

D = "t/.hoodie/.temp/001"
CHILD_TIMEOUT_S = 30


def _run(program: str, *arguments: object) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE)


RACE = """
import sys
from pathlib import Path
from typing import Any
from marker_sim.seams import Condition, PreconditionFailed
from marker_sim.storages.local import LocalStorage
storage, won = LocalStorage(Path(sys.argv[1])), 0
print("ready", flush=True)
sys.stdin.readline()
for number in range(500):
    try:
        storage.put(f"t/.hoodie/.temp/1/p{number % 7}/{number}", sys.argv[2].encode(), Condition.IF_ABSENT)
        won += 1
    except PreconditionFailed:
        pass
print(won, flush=True)
"""


def test_two_processes_never_both_create(tmp_path: Path) -> None:
    racers = [_run(RACE, tmp_path, name) for name in ("one", "two")]
    assert all(racer.stdout and racer.stdout.readline() == b"ready\n" for racer in racers)
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write(b"go\n")
        racer.stdin.flush()
    won = [int(racer.communicate(timeout=CHILD_TIMEOUT_S)[0]) for racer in racers]
    assert sum(won) == 500
    found = [LocalStorage(tmp_path).get(path).data for path in LocalStorage(tmp_path).list("t/")]
    assert [found.count(b"one"), found.count(b"two")] == won


COUNT = """
import sys
from pathlib import Path
from typing import Any
from marker_sim.storages.locks import HostLocks
locks, file = HostLocks(Path(sys.argv[1])), Path(sys.argv[1]) / "count"
for _ in range(300):
    with locks.hold("t/.hoodie/.temp/1/MARKERS0"):
        file.write_text(str(int(file.read_text()) + 1))
"""


def test_the_lock_excludes_processes_and_threads(tmp_path: Path) -> None:
    (tmp_path / "count").write_text("0")
    children = [_run(COUNT, tmp_path) for _ in range(2)]
    locks = HostLocks(tmp_path)

    def add(_: int) -> None:
        with locks.hold("t/.hoodie/.temp/1/MARKERS0"):
            (tmp_path / "count").write_text(str(int((tmp_path / "count").read_text()) + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(300)))
    assert [child.wait(CHILD_TIMEOUT_S) for child in children] == [0, 0]
    assert (tmp_path / "count").read_text() == "900"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["count", LOCK_FILE]


HOLD = """
import sys
from pathlib import Path
from typing import Any
from marker_sim.storages.locks import HostLocks
with HostLocks(Path(sys.argv[1])).hold("t/.hoodie/.temp/1/MARKERS0"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_dies_with_its_process_and_holds_up_no_other_name(tmp_path: Path) -> None:
    child = _run(HOLD, tmp_path)
    assert child.stdout is not None and child.stdout.readline() == b"held\n"
    locks = HostLocks(tmp_path)
    assert locks.try_hold("t/.hoodie/.temp/1/MARKERS0") is None
    other = locks.try_hold("t/.hoodie/.temp/1/MARKERS1")
    assert other is not None
    locks.release(other)
    child.kill()
    child.wait(CHILD_TIMEOUT_S)
    with locks.hold("t/.hoodie/.temp/1/MARKERS0"):
        assert LocalStorage(tmp_path).list("") == ()
    child.communicate()


REWRITE = """
import sys
from pathlib import Path
from typing import Any
from marker_sim.storages.local import LocalStorage
storage, number = LocalStorage(Path(sys.argv[1])), 0
print("ready", flush=True)
while True:
    number += 1
    storage.put("t/.hoodie/.temp/1/MARKERS0", (b"%09d\\n" % number) * 20_000)
"""


def test_a_writer_killed_during_put_leaves_the_old_or_the_new_content(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    lengths = set()
    for life in range(12):
        child = _run(REWRITE, tmp_path)
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        threading.Event().wait(0.01 + life * 0.003)  # Where the kill lands is chance; that nothing tears is not.
        child.send_signal(signal.SIGKILL)
        child.communicate()
        for path in storage.list("t/"):
            data = storage.get(path).data
            assert len(data) == 200_000 and data == data[:10] * 20_000
            lengths.add(data[:10])
    assert lengths
    storage.delete("t/.hoodie/.temp/1/MARKERS0")
    assert not (tmp_path / "t/.hoodie/.temp/1").exists(), "temporary files of dead writers keep no directory"


def test_a_marker_directory_in_which_a_writer_left_its_temporary_file_alone_goes_with_its_deletion(
    tmp_path: Path,
) -> None:
    storage, home = LocalStorage(tmp_path), tmp_path / D
    home.mkdir(parents=True)
    (home / ".marker-sim-0123456789abcdef.tmp").write_bytes(b"half")
    assert not delete_directory(storage, cast(Runtime, None), D, 4), "no marker was there"
    assert not home.exists()


def test_a_list_misses_no_file_that_is_being_replaced(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    paths = tuple(sorted(f"{D}/MARKERS{number}" for number in range(20)))
    for path in paths:
        storage.put(path, b"")
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            for path in paths:
                storage.put(path, b"again\n")

    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(rewrite) for _ in range(2)]
        try:
            assert all(storage.list(f"{D}/") == paths for _ in range(1_000))
        finally:
            stop.set()
        assert [writer.result() for writer in writers] == [None, None]


def test_a_put_survives_that_its_directory_is_removed_all_the_time(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)

    def put_and_delete(name: str) -> None:
        for _ in range(300):
            storage.put(f"{D}/p/{name}", name.encode())
            assert storage.get(f"{D}/p/{name}").data == name.encode()
            storage.delete(f"{D}/p/{name}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put_and_delete, "abcd"))
    assert [path.name for path in tmp_path.rglob("*")] == ["t", ".hoodie", ".temp"]


def test_deleting_removes_emptied_directories_only_inside_a_marker_directory(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    for path in (f"{D}/a/b/x", f"{D}/a/y", "t/dt=1/data.parquet", "t/.hoodie/1.commit"):
        storage.put(path, b"")
    storage.delete(f"{D}/a/b/x")
    assert (tmp_path / D / "a").is_dir() and not (tmp_path / D / "a/b").exists()
    for path in storage.list(""):
        storage.delete(path)
    assert not (tmp_path / D).exists()
    assert (tmp_path / "t/.hoodie/.temp").is_dir() and (tmp_path / "t/dt=1").is_dir()


def test_no_symbolic_link_is_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    for place in (outside / "in", root / D):
        place.mkdir(parents=True)
    (outside / "in" / "file").write_bytes(b"theirs")
    (root / D / "away").symlink_to(outside / "in")
    (root / D / "MARKERS0").symlink_to(outside / "in" / "file")
    (root / D / "up").symlink_to("../../..")
    storage = LocalStorage(root)
    refused: tuple[Callable[[str], Any], ...] = (
        storage.get,
        storage.delete,
        lambda path: storage.put(path, b"ours"),
        lambda path: storage.put(path, b"ours", Condition.IF_ABSENT),
        lambda path: storage.overwrite(path, b"ours"),
        lambda path: storage.list(f"{path}/"),
    )
    for call in refused:
        with pytest.raises(PathRefused) as caught:
            call(f"{D}/away/file")
        assert caught.value.definite
    for path in (f"{D}/away/new", f"{D}/up/new"):
        with pytest.raises(PathRefused):
            storage.put(path, b"ours")
    with pytest.raises(PathRefused):
        storage.get(f"{D}/MARKERS0")
    with pytest.raises(PathRefused):
        storage.overwrite(f"{D}/MARKERS0", b"ours")
    assert storage.list(f"{D}/") == (f"{D}/MARKERS0", f"{D}/away", f"{D}/up")
    storage.put(f"{D}/MARKERS0", b"ours")
    for path in storage.list(f"{D}/"):
        storage.delete(path)
    assert [(p.name, p.read_bytes()) for p in outside.rglob("*") if p.is_file()] == [("file", b"theirs")]


@pytest.mark.parametrize(
    "path", ["", "/a", "a//b", "a/", "../x", "a/../b", "./a", "a\0b", "x" * 256, "\ud800", "d/" * 5000]
)
def test_a_path_that_no_file_can_have_is_refused_and_changes_nothing(tmp_path: Path, path: str) -> None:
    storage = LocalStorage(tmp_path)
    for call in (storage.get, storage.delete, lambda p: storage.put(p, b""), lambda p: storage.overwrite(p, b"")):
        with pytest.raises(PathRefused) as caught:
            call(path)
        assert isinstance(caught.value, ValueError) and caught.value.definite
    assert list(tmp_path.iterdir()) == []


def test_files_and_directories_in_each_others_place_are_refused(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.put("a/file", b"1")
    (tmp_path / "a" / "directory").mkdir()
    os.mkfifo(tmp_path / "a" / "pipe")
    with pytest.raises(PathRefused, match="a file where a directory"):
        storage.put("a/file/below", b"")
    with pytest.raises(PathRefused, match="a directory is where"):
        storage.put("a/directory", b"x", Condition.IF_ABSENT)
    with pytest.raises(StorageError):
        storage.put("a/directory", b"x")
    with pytest.raises(NotFound):
        storage.get("a/file/below")
    with pytest.raises(NotFound):
        storage.get("a/directory")
    with pytest.raises(PathRefused, match="no regular file"):
        storage.get("a/pipe")
    storage.delete("a/file/below")
    storage.delete("a/directory")
    assert storage.list("") == ("a/file", "a/pipe")


def test_an_overwrite_replaces_in_place(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.overwrite("t/file", b"first content")
    inode = (tmp_path / "t/file").stat().st_ino
    storage.overwrite("t/file", b"new")
    assert storage.get("t/file").data == b"new" and (tmp_path / "t/file").stat().st_ino == inode


def test_a_full_disk_replaces_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    storage.put("t/file", b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        for path in ("t/file", "t/new"):
            with pytest.raises(DiskFull):
                storage.put(path, b"x" * 5_000)
        with pytest.raises(DiskFull):
            storage.overwrite("t/torn", b"x" * 5_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert storage.get("t/file").data == b"old"
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["file", "torn"]


def test_an_error_of_the_system_is_an_error_of_the_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = LocalStorage(tmp_path)
    storage.put("t/file", b"old")

    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(StorageFailed, match="Input/output error") as caught:
        storage.put("t/file", b"new")
    assert not caught.value.definite
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["file"]
