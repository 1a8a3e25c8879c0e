"""The filter's program, run step by step for both kinds of processor, and its numbers beside the kernel's headers."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
from pathlib import Path

import pytest

from properties.faces.worlds import FICLONE, MACHINES, OWN, STOPPED, Machine, assemble, numbers

BASE = 10_000
NOTIFY, ALLOW, KILL, ERROR = 0x7FC00000, 0x7FFF0000, 0x80000000, 0x00050000
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


def verdict(program: bytes, number: int, machine: int, *arguments: int) -> int:
    """What a filter says of a call."""
    words = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, machine, 0, *(word % (1 << 64) for word in words))
    steps = list(struct.iter_unpack("=HBBI", program))
    at = loaded = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", data, value)
            case 0x06:
                return int(value)
            case _:
                fits = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
                at += yes if fits else no


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_the_filter_stops_what_it_says(machine: Machine) -> None:
    known, plain, reading = numbers(machine), assemble(machine, BASE, False), assemble(machine, BASE, True)

    def asked(name: str, *arguments: int, program: bytes = plain) -> int:
        return verdict(program, known[name], machine.audit, *arguments)

    for number in (0, 9, BASE, 2 * BASE):
        assert asked("write", number) == asked("dup", number) == asked("copy_file_range", 5, 0, number) == NOTIFY
    for number in (10, 500, BASE - 1, -1):
        assert asked("write", number) == asked("ftruncate", number) == ALLOW
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_RDONLY | os.O_CREAT, os.O_TRUNC):
        assert asked("openat", 0, 0, flags) == NOTIFY
    assert asked("openat", 0, 0, os.O_CLOEXEC) == ALLOW
    assert asked("openat", 0, 0, os.O_CLOEXEC, program=reading) == asked("statx", program=reading) == NOTIFY
    assert asked("statx") == ALLOW and asked("fsync", 77) == asked("sync") == asked("renameat2") == NOTIFY
    assert asked("fcntl", BASE, fcntl.F_DUPFD) == asked("fcntl", 1, fcntl.F_DUPFD_CLOEXEC) == NOTIFY
    assert asked("fcntl", BASE, fcntl.F_GETFL) == asked("fcntl", 50, fcntl.F_DUPFD) == ALLOW
    assert asked("ioctl", BASE, FICLONE) == NOTIFY and asked("ioctl", 1, 0x5401) == ALLOW
    assert asked("mmap", 0, 1, 3, 1, BASE) == NOTIFY
    assert asked("mmap", 0, 1, 1, 1, BASE) == asked("mmap", 0, 1, 3, 2, BASE) == asked("mmap", 0, 1, 3, 1, -1) == ALLOW
    assert asked("openat2") == asked("io_uring_setup") == asked("io_submit") == ERROR | errno.ENOSYS
    assert verdict(plain, 99_999, machine.audit) == ALLOW
    assert verdict(plain, known["write"], 0x40000003, 1) == KILL, "a program for another processor"
    if machine.x32:
        assert verdict(plain, machine.x32 | known["write"], machine.audit, 1) == ERROR | errno.ENOSYS


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_numbers_are_those_of_the_kernel_s_headers(machine: Machine) -> None:
    header = HEADERS[machine.name]
    if not header.exists():
        pytest.skip(f"needs {header}, of the package linux-libc-dev")
    text = header.read_text()
    there = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    renamed = {"newfstatat": "fstatat"} if machine.name == "aarch64" else {}
    for name, number in numbers(machine).items():
        assert there[renamed.get(name, name)] == number, name
    missing = {row.name for row in (*STOPPED, *OWN)} - numbers(machine).keys()
    assert not missing & there.keys(), "a call that the machine has"
