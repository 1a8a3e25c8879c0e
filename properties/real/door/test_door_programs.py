"""Programs in several languages, unmodified: their calls are shown, refused, and the last thing that they did."""

from __future__ import annotations

import errno
import os
import re
import signal
import sqlite3
from pathlib import Path

from properties import tools
from properties.faces.worlds import Decision
from properties.real.door.behind import Rule, Seen, at, program, python, run

SQLITE = """
import sqlite3, sys
base = sqlite3.connect("base", isolation_level=None)
base.execute("PRAGMA journal_mode = WAL")
base.execute("PRAGMA synchronous = FULL")
base.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY)")
for n in range(1, 11):
    base.execute("INSERT INTO t VALUES (?)", (n,))
    print(n, flush=True)
"""
NODE = """
const fs = require('fs');
(async () => {
  await fs.promises.mkdir('d', {recursive: true});
  await Promise.all([...Array(20).keys()].map(n => fs.promises.writeFile(`d/${n}`, `text ${n}`)));
  fs.renameSync('d/0', 'first'); fs.unlinkSync('d/1'); fs.appendFileSync('first', ' and more');
  const file = await fs.promises.open('first', 'r+'); await file.truncate(4); await file.sync(); await file.close();
  try { fs.writeFileSync('full', 'x'); console.log('written') } catch (error) { console.log(error.code) }
})()
"""
JAVA = """
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import static java.nio.file.StandardOpenOption.*;

public class Small {
    public static void main(String[] words) throws Exception {
        new File("d").mkdirs();
        Files.write(Path.of("d/a"), "text".getBytes());
        Files.move(Path.of("d/a"), Path.of("d/b"), StandardCopyOption.ATOMIC_MOVE);
        Files.copy(Path.of("d/b"), Path.of("d/c"));
        try (FileChannel file = FileChannel.open(Path.of("d/b"), WRITE)) {
            file.write(ByteBuffer.wrap("TE".getBytes()), 0);
            file.force(true);
            file.truncate(3);
        }
        Files.delete(Path.of("d/c"));
        try (OutputStream out = new FileOutputStream("full")) {
            out.write(new byte[10]);
            System.out.println("written");
        } catch (IOException error) {
            System.out.println(error.getMessage());
        }
    }
}
"""
GO = """
package main

import ("fmt"; "os"; "runtime"; "sync"; "syscall"; "errors")

func main() {
	var all sync.WaitGroup
	rubbish := make([][]byte, 100)
	for n := 0; n < 8; n++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for turn := 0; turn < 10; turn++ {
				name := fmt.Sprintf("f%d-%d", n, turn)
				file, err := os.Create(name + ".new")
				if err != nil { panic(err) }
				if _, err := file.WriteString(name); err != nil { panic(err) }
				if turn == 0 { file.Sync() }
				file.Close()
				if err := os.Rename(name + ".new", name); err != nil { panic(err) }
				rubbish[turn] = make([]byte, 1 << 20)
				runtime.GC()
			}
		}()
	}
	all.Wait()
	err := os.WriteFile("full", []byte("x"), 0644)
	fmt.Println(errors.Is(err, syscall.ENOSPC))
}
"""
C = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#define SAY(name, call, error) do { long result = call; printf(name " %ld %d\n", result, errno == error); } while (0)
static void *late(void *file) {
    usleep(50000);  /* The first thread of the process is gone by then. */
    printf("thread %zd\n", write(*(int *)file, "by a thread", 11));
    fflush(stdout);
    _exit(0);
}
int main(void) {
    char path[64], *page;
    SAY("x32", syscall(0x40000000 | SYS_getpid), ENOSYS);
    SAY("io_uring", syscall(425, 1, 0), ENOSYS);
    SAY("openat2", syscall(437, AT_FDCWD, "x", 0, 0), ENOSYS);
    int direct = open("direct", O_WRONLY | O_CREAT | O_DIRECT, 0600);
    if (posix_memalign((void **)&page, 4096, 8192)) return 1;
    memset(page, 'd', 8192);
    printf("direct %zd\n", write(direct, page, 8192));
    printf("cut direct %zd\n", write(direct, page, 8192));
    int unnamed = open(".", O_TMPFILE | O_RDWR, 0600);
    printf("unnamed %zd\n", write(unnamed, "text", 4));
    snprintf(path, sizeof path, "/proc/self/fd/%d", unnamed);
    printf("link %d\n", linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    printf("link again %d\n", linkat(unnamed, "", AT_FDCWD, "named2", AT_EMPTY_PATH));
    int again = open(path, O_WRONLY | O_APPEND), copy = dup(again);
    printf("copied %zd\n", write(copy, " more", 5));
    printf("sendfile %zd\n", sendfile(copy, unnamed, NULL, 4));
    SAY("copy_file_range", copy_file_range(unnamed, NULL, copy, NULL, 4, 0), EXDEV);
    int made = open("made", O_WRONLY | O_CREAT, 0600);
    off_t from = 1, to = 2;
    printf("range %zd\n", copy_file_range(unnamed, &from, made, &to, 3, 0));
    printf("moved %d\n", from == 4 && to == 5 && lseek(unnamed, 0, SEEK_CUR) == 4 && lseek(made, 0, SEEK_CUR) == 0);
    lseek(made, 0, SEEK_END);
    lseek(unnamed, 5, SEEK_SET);
    printf("half sent %zd\n", sendfile(made, unnamed, NULL, 4));
    printf("sent %zd\n", sendfile(made, unnamed, NULL, 100));
    printf("none left %zd\n", sendfile(made, unnamed, NULL, 100));
    SAY("not for reading", sendfile(made, made, NULL, 4), EBADF);
    lseek(unnamed, 4, SEEK_SET);
    printf("open by proc %d\n", openat(direct, "x", O_WRONLY) < 0 && errno == ENOTDIR);
    SAY("bad address", write(unnamed, (void *)8, 4), EFAULT);
    mkfifo("pipe", 0600);
    int both = open("pipe", O_RDWR);
    printf("pipe %zd\n", write(both, "p", 1));
    fflush(stdout);
    pthread_t thread;
    pthread_create(&thread, NULL, late, &unnamed);
    pthread_exit(NULL);
}
"""


def test_a_database_of_sqlite_is_whole_after_a_kill_at_any_of_its_calls(root: Path) -> None:
    seen = Seen()
    with seen.door(root) as door:
        code, said = run(door, root, *python(SQLITE))
        assert (code, said.split()) == (0, [str(n) for n in range(1, 11)])
        assert all("shm" in sentence and "mapped" in sentence for sentence in door.unseen)
    writes = [call for call in seen.calls if call.operation == "write" and call.path == "base-wal"]
    assert len(writes) > 20 and any(call.operation == "sync" for call in seen.calls)
    for number in range(30, len(seen.calls), len(seen.calls) // 4):
        for path in root.iterdir():
            path.unlink()
        decision = Decision(kill="after", bytes_max=11) if number % 2 else Decision(kill="before")
        again = Seen([nth(number, decision)])
        with again.door(root) as door:
            code, said = run(door, root, *python(SQLITE))
        assert code == -signal.SIGKILL and len(again.calls) == number
        with sqlite3.connect(root / "base") as base:
            assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            stored = {n for (n,) in base.execute("SELECT n FROM t")} if said else set()
        assert {int(word) for word in said.split()} <= stored, "what was committed is there"


def nth(number: int, decision: Decision) -> Rule:
    """A decision for the call with this number."""
    return lambda call: decision if call.number == number else None


def full() -> Seen:
    return Seen([at("write", "^full$", 1, Decision(error=errno.ENOSPC))])


def test_a_shell_s_redirections_are_seen(root: Path) -> None:
    (root / "script").write_text(
        "mkdir -p d && exec 3> d/three && echo a >&3 && echo b > d/b && { echo c; echo e; } >> d/b && cat d/b > d/copy"
        " && cp d/b d/second && exec > d/rest && echo out && (echo inner > d/in) && echo again"
        " && exec 3>&- && mv d/b d/moved && rm d/second && ln -s moved d/soft"
    )
    for shell in ("sh", "bash"):
        seen = Seen()
        with seen.door(root) as door:
            assert run(door, root, shell, "script") == (0, ""), shell
            assert door.unseen == ()
        found = {path.name: path.read_text() for path in (root / "d").iterdir()}
        assert found == {
            "three": "a\n", "moved": "b\nc\ne\n", "copy": "b\nc\ne\n", "rest": "out\nagain\n", "in": "inner\n",
            "soft": "b\nc\ne\n",
        }  # fmt: skip
        by_writes = dict.fromkeys(("d/three", "d/b", "d/copy", "d/second", "d/rest", "d/in"), b"")
        for call in seen.calls:
            if call.operation == "write":
                by_writes[call.path] += call.data
        assert by_writes["d/copy"] == by_writes["d/second"] == b"b\nc\ne\n" and by_writes["d/rest"] == b"out\nagain\n"
        for path in (root / "d").iterdir():
            path.unlink()
        (root / "d").rmdir()


def test_node(root: Path, tmp_path: Path) -> None:
    program(tmp_path, "", "node", "--version")
    seen = full()
    with seen.door(root) as door:
        assert run(door, root, "node", "-e", NODE) == (0, "ENOSPC\n")
    assert (root / "first").read_text() == "text" and len(list((root / "d").iterdir())) == 18
    assert sum(call.operation == "write" and call.path.startswith("d/") for call in seen.calls) == 20
    assert {"open", "write", "rename", "delete", "cut", "sync", "mkdir"} <= {call.operation for call in seen.calls}


def test_java(root: Path, tmp_path: Path) -> None:
    (tmp_path / "Small.java").write_text(JAVA)
    program(tmp_path, "", "java", "-version")
    seen = full()
    small = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", str(tmp_path / "Small.java"))
    with seen.door(root) as door:
        assert run(door, root, *small) == (0, "No space left on device\n")
    assert (root / "d" / "b").read_text() == "TEx" and os.listdir(root / "d") == ["b"]
    assert [call.operation for call in seen.calls if call.path == "d/b"] == ["open", "write", "sync", "cut"]
    assert ("rename", "d/a") in seen.told() and ("delete", "d/c") in seen.told()


@tools.needs(tools.program("go"))
def test_a_static_program_in_go_that_collects_its_garbage(root: Path, tmp_path: Path) -> None:
    """Its runtime sends itself SIGURG all the time: a call that were repeated after its effect would show."""
    (tmp_path / "main.go").write_text(GO)
    built = program(tmp_path, "small", "env", "CGO_ENABLED=0", "go", "build", "-o", "small", "main.go")
    seen = full()
    with seen.door(root) as door:
        assert run(door, root, built) == (0, "true\n")
    names = {f"f{n}-{turn}" for n in range(8) for turn in range(10)}
    assert {path.name: path.read_text() for path in root.iterdir() if path.name != "full"} == {n: n for n in names}
    renames = [call.target for call in seen.calls if call.operation == "rename"]
    assert sorted(renames) == sorted(names) and all(not o.error for c, o in seen.outcomes if c.path != "full")


def test_a_program_in_c_that_tries_every_way_around(root: Path, tmp_path: Path) -> None:
    (tmp_path / "ways.c").write_text(C)
    built = program(tmp_path, "ways", "cc", "-pthread", "-o", "ways", "ways.c")
    seen = Seen(
        [at("write", f"^{path}$", 2, Decision(bytes_max=size)) for path, size in (("direct", 777), ("made", 2))]
    )
    with seen.door(root) as door:
        code, said = run(door, root, built)
        assert code == 0
        assert door.unseen == ()
    found = dict(re.findall(r"(.+?) (-?\d.*)", said))
    assert found == {
        "x32": "-1 1", "io_uring": "-1 1", "openat2": "-1 1", "direct": "8192", "cut direct": "777", "unnamed": "4",
        "link": "0", "link again": "0", "copied": "5", "sendfile": "-1", "copy_file_range": "-1 1", "range": "3",
        "moved": "1", "half sent": "2", "sent": "2", "none left": "0", "not for reading": "-1 1",
        "open by proc": "1", "bad address": "-1 1", "pipe": "1", "thread": "11",
    }  # fmt: skip
    assert (root / "direct").read_bytes() == b"d" * (8192 + 777)
    assert (root / "made").read_bytes() == b"\0\0extmore"
    assert [call.data for call in seen.calls if call.path == "made" and call.operation == "write"] == [
        b"ext", b"more", b"re",
    ]  # fmt: skip
    assert (root / "named").read_bytes() == (root / "named2").read_bytes() == b"textby a thread"
