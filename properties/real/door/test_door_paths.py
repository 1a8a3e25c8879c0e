"""Which calls are the door's: paths that lead below the root, however they are written, and no others."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from properties.faces.worlds import Decision
from properties.real.door.behind import Seen, at, python, run


def shown(root: Path, code: str, *, folder: Path | None = None) -> tuple[Seen, str]:
    seen = Seen()
    with seen.door(root) as door:
        command = door.start(python(code), {}, process="server-1", folder=folder or root)
        said = command.popen.communicate(timeout=60)[0].decode()
        assert command.popen.returncode == 0, said
        assert door.unseen == ()
    return seen, said


def test_relative_absolute_and_by_a_directory_s_number(root: Path, tmp_path: Path) -> None:
    code = f"""
import os
os.mkdir("d")
here = os.open("d", os.O_RDONLY)
paths = ("relative", None), ("{root}/absolute", None), ("numbered", here), ("../up", here), ("d//./x", None)
for path, number in paths:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, dir_fd=number))
os.chdir("d")
os.rename("numbered", "moved", src_dir_fd=here, dst_dir_fd=here)
os.mkdir("inner/")
os.unlink("../d/../up")
os.rmdir("inner/")
"""
    seen, _ = shown(root, code)
    assert seen.told() == [
        ("mkdir", "d"), ("open", "relative"), ("open", "absolute"), ("open", "d/numbered"), ("open", "up"),
        ("open", "d/x"), ("rename", "d/numbered"), ("mkdir", "d/inner"), ("delete", "up"), ("rmdir", "d/inner"),
    ]  # fmt: skip


def test_links_lead_in_and_out(root: Path, tmp_path: Path) -> None:
    (tmp_path / "way-in").symlink_to(root)
    (root / "way-out").symlink_to(tmp_path)
    (root / "file-out").symlink_to(tmp_path / "outside")
    (tmp_path / "file-in").symlink_to(root / "target")
    (root / "dangling").symlink_to("made-by-a-link")
    (root / "circle").symlink_to("circle")
    code = f"""
import os
paths = "{tmp_path}/way-in/a", "way-out/not-shown", "file-out", "{tmp_path}/file-in", "dangling", "way-out/root/b"
for path in paths:
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(file, b"x")
    os.close(file)
for path, flags in (("circle", os.O_CREAT), ("dangling", os.O_NOFOLLOW), ("dangling", os.O_CREAT | os.O_EXCL)):
    try:
        os.open(path, os.O_WRONLY | flags)
        print("opened", path)
    except OSError as error:
        print(error.errno)
os.truncate("dangling", 0)
os.unlink("dangling")
"""
    seen, said = shown(root, code)
    assert [path for operation, path in seen.told() if operation == "write"] == ["a", "target", "made-by-a-link", "b"]
    assert said.split() == ["40", "40", "17"] and (tmp_path / "outside").read_text() == "x"
    assert seen.told()[-2:] == [("cut", "made-by-a-link"), ("delete", "dangling")]


def test_a_file_is_found_by_its_number_and_by_its_name_of_now(root: Path) -> None:
    code = """
import os
file = os.open("a", os.O_RDWR | os.O_CREAT)
os.rename("a", "b")
os.write(file, b"1")
again = os.open(f"/proc/self/fd/{file}", os.O_WRONLY | os.O_APPEND)
os.write(again, b"2")
third = os.open(f"/dev/fd/{file}", os.O_WRONLY | os.O_APPEND)
os.unlink("b")
os.write(third, b"3")
os.open("b", os.O_WRONLY | os.O_CREAT)
os.write(third, b"4")
print(os.pread(file, 9, 0).decode())
"""
    seen, said = shown(root, code)
    assert said == "1234\n"
    writes = [(call.path, call.data, call.offset) for call in seen.calls if call.operation == "write"]
    assert writes == [("b", b"1", 0), ("b", b"2", 1), ("b (deleted)", b"3", 2), ("b (deleted)", b"4", 3)]


def test_what_lies_outside_is_as_fast_and_as_free_as_ever(root: Path, tmp_path: Path) -> None:
    code = f"""
import os, socket
os.mkfifo("pipe")
reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
os.write(os.open("pipe", os.O_WRONLY), b"through")
print(os.read(reader, 9).decode())
with open("{tmp_path}/rooted", "w") as file:
    file.write("x")
one, other = socket.socketpair()
os.dup2(one.fileno(), 4)
os.write(4, b"socket")
print(other.recv(9).decode())
server = socket.socket(socket.AF_UNIX)
server.bind("socket")
try:
    os.open("missing/a", os.O_WRONLY | os.O_CREAT)
except FileNotFoundError:
    print("missing")
"""
    seen, said = shown(root, code)
    assert said.split() == ["through", "socket", "missing"] and seen.told() == [("mknod", "pipe")]


def test_renames_and_links_across_the_border_are_shown(root: Path, tmp_path: Path) -> None:
    (tmp_path / "from").write_text("x")
    code = f"""
import os
os.rename("{tmp_path}/from", "in")
os.link("in", "{tmp_path}/linked")
os.rename("in", "{tmp_path}/out")
"""
    seen = Seen()
    with seen.door(root) as door:
        assert run(door, root, *python(code)) == (0, "")
        assert door.unseen == ()  # Nobody can write to it without being seen.
    assert [(call.operation, call.path, call.target) for call in seen.calls] == [
        ("rename", "", "in"), ("link", "in", ""), ("rename", "in", "")
    ]  # fmt: skip


OPENED_OUTSIDE = """
import os, sys
os.mkdir("{outside}/d")
file = os.open("{outside}/d/a", os.O_WRONLY | os.O_CREAT)
os.dup2(file, {number})
os.close(file)
if {forked}:
    if os.fork():
        os.close({number})
    else:
        os.setsid()
        os.read(0, 1)
        os._exit(0)
os.rename("{outside}/d", "d")
if not {forked}:
    os.write({number}, b"x")
"""


@pytest.mark.parametrize(("number", "forked", "escapes"), [(30, False, True), (30, True, True), (5, False, False)])
def test_what_comes_in_from_outside_is_unseen_while_it_is_open_for_writing_there(
    root: Path, tmp_path: Path, number: int, forked: bool, escapes: bool
) -> None:
    seen = Seen()
    with seen.door(root) as door:
        code = OPENED_OUTSIDE.format(outside=tmp_path, number=number, forked=forked)
        command = door.start(python(code), {}, process="server-1", folder=root, stdin=subprocess.PIPE)
        assert command.popen.wait(60) == 0
        said = ("d was opened outside, and writes on that number do not stop",)
        assert door.unseen == (said if escapes else ())
    assert ("write", "d/a") not in seen.told() if escapes else ("write", "d/a") in seen.told()


def test_reads_are_shown_and_refused_where_they_are_asked_for(root: Path) -> None:
    for name in ("a", "broken"):
        (root / name).write_text("x")
    code = """
import os
os.stat("a")
open("a").read()
os.listdir(".")
for name in ("missing", "broken"):
    try:
        open(name)
    except OSError as error:
        print(error.errno)
"""
    seen = Seen([at("get", "broken", 1, Decision(error=errno.EIO))])
    with seen.door(root, reads=True) as door:
        assert run(door, root, *python(code)) == (0, "2\n5\n")
    assert {("stat", "a"), ("get", "a"), ("list", ""), ("get", "missing")} <= set(seen.told())
    assert not shown(root, code)[0].calls


def test_a_call_is_made_as_the_process_would(root: Path) -> None:
    """Umask, limits and modes are the process' own."""
    code = """
import json, os, resource, signal
os.umask(0o027)
os.close(os.open("a", os.O_WRONLY | os.O_CREAT, 0o666))
os.mkdir("d", 0o777)
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 100))
signal.signal(signal.SIGXFSZ, lambda *_: said.append("signal"))
said, file = [], os.open("a", os.O_WRONLY)
said.append(os.write(file, bytes(15)))
try:
    os.write(file, b"x")
except OSError as error:
    said.append(error.errno)
print(json.dumps([*said, os.stat("a").st_mode & 0o777, os.stat("d").st_mode & 0o777]))
"""
    _, said = shown(root, code)
    written, *refused, mode, folder = json.loads(said)
    assert (written, mode, folder) == (10, 0o640, 0o750) and {*refused} == {"signal", errno.EFBIG}


def test_copies_to_numbers_that_do_not_stop_are_said(root: Path) -> None:
    code = "import os\nfile = os.open('a', os.O_WRONLY | os.O_CREAT)\nos.dup2(file, 2)\nos.dup2(file, 100)\n"
    code += "os.write(2, b'seen')\nos.write(100, b'not')\nos.write(os.dup(2), b'copied')\n"
    code += "os.dup2(file, file + 7)\nos.write(file + 7, b'high')"
    seen = Seen()
    with seen.door(root) as door:
        assert run(door, root, *python(code)) == (0, "")
        assert door.unseen == ("a was copied to number 100, on which writes do not stop",)
    assert [call.data for call in seen.calls if call.operation == "write"] == [b"seen", b"copied", b"high"]
    assert os.path.getsize(root / "a") == len("seennotcopiedhigh")
