"""The system calls that stop at the door, with their numbers on x86-64 and aarch64, and the filter that stops them.

The filter is a program for the kernel's packet filter (BPF). It sees numbers and no paths. The kit gives files below
the root descriptors from `base` on, so a write to a socket never stops and a write to a watched file always does. Each
call is one block: compare its number, else jump past the block; every path through the block ends with a verdict.

aarch64 has only the forms with a directory; its numbers come from the kernel's headers (asm-generic/unistd.h) and were
not tried on such a machine.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import struct
from typing import NamedTuple

from marker_sim.errors import HarnessError

LOW = 10  # Writes on descriptors below it are watched as well: a shell duplicates an opened file to 1.
FICLONE, FICLONERANGE = 0x40049409, 0x4020940D
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_MAP_SHARED, _PROT_WRITE = 1, 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|..., BPF_RET
_KILL, _NOTIFY, _ERROR, _ALLOW = 0x8000_0000, 0x7FC0_0000, 0x0005_0000, 0x7FFF_0000  # SECCOMP_RET_*
_NEGATIVE = 0x8000_0000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16  # In struct seccomp_data.
Step = tuple[int, int, int, int]
_ELSE = -1  # A jump to the end of the block, which allows the call.


class ArgumentTest(NamedTuple):
    """The condition on an argument under which a call stops.

    test: any-bit of a mask, one-of some values, watched (a descriptor on which writes stop), or given (from the base
    on).
    """

    argument: int
    test: str
    values: tuple[int, ...] = ()


class SystemCall(NamedTuple):
    """A row: its numbers by machine (0 where a machine has no such call), and the conditions under which it stops.

    error: the errno that every such call gets without stopping, "" for none. reads: stops only where reads are watched.
    """

    name: str
    x86_64: int
    aarch64: int
    when: tuple[ArgumentTest, ...] = ()
    error: str = ""
    reads: bool = False


class Machine(NamedTuple):
    """A processor architecture. audit: its number in filter data. x32: the bit of its second interface, 0 for none."""

    name: str
    audit: int
    x32: int


MACHINES = (Machine("x86_64", 0xC000003E, 0x40000000), Machine("aarch64", 0xC00000B7, 0))


def _on(argument: int) -> tuple[ArgumentTest, ...]:
    return (ArgumentTest(argument, "watched"),)


def _with(argument: int, mask: int) -> tuple[ArgumentTest, ...]:
    return (ArgumentTest(argument, "any-bit", (mask,)),)


STOPPED = (
    SystemCall("write", 1, 64, _on(0)),
    SystemCall("pwrite64", 18, 68, _on(0)),
    SystemCall("writev", 20, 66, _on(0)),
    SystemCall("pwritev", 296, 70, _on(0)),
    SystemCall("pwritev2", 328, 287, _on(0)),
    SystemCall("open", 2, 0, _with(1, _WRITES)),
    SystemCall("openat", 257, 56, _with(2, _WRITES)),
    SystemCall("creat", 85, 0),
    SystemCall("fsync", 74, 82),
    SystemCall("fdatasync", 75, 83),
    SystemCall("sync", 162, 81),
    SystemCall("syncfs", 306, 267),
    SystemCall("ftruncate", 77, 46, _on(0)),
    SystemCall("fallocate", 285, 47, _on(0)),
    SystemCall("truncate", 76, 45),
    SystemCall("rename", 82, 0),
    SystemCall("renameat", 264, 38),
    SystemCall("renameat2", 316, 276),
    SystemCall("unlink", 87, 0),
    SystemCall("unlinkat", 263, 35),
    SystemCall("mkdir", 83, 0),
    SystemCall("mkdirat", 258, 34),
    SystemCall("rmdir", 84, 0),
    SystemCall("link", 86, 0),
    SystemCall("linkat", 265, 37),
    SystemCall("symlink", 88, 0),
    SystemCall("symlinkat", 266, 36),
    SystemCall("mknod", 133, 0),
    SystemCall("mknodat", 259, 33),
    SystemCall("copy_file_range", 326, 285, _on(2)),
    SystemCall("sendfile", 40, 71, _on(0)),
    SystemCall("splice", 275, 76, _on(2)),
    SystemCall("ioctl", 16, 29, (ArgumentTest(1, "one-of", (FICLONE, FICLONERANGE)), *_on(0))),
    SystemCall("close", 3, 57, (ArgumentTest(0, "given"),)),
    SystemCall("dup", 32, 23, _on(0)),
    SystemCall("dup2", 33, 0, _on(0)),
    SystemCall("dup3", 292, 24, _on(0)),
    SystemCall("fcntl", 72, 25, (ArgumentTest(1, "one-of", (fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC)), *_on(0))),
    SystemCall("mmap", 9, 222, (*_with(2, _PROT_WRITE), *_with(3, _MAP_SHARED), *_on(4))),
    SystemCall("openat2", 437, 437, error="ENOSYS"),
    SystemCall("io_uring_setup", 425, 425, error="ENOSYS"),
    SystemCall("io_submit", 209, 2, error="ENOSYS"),
    SystemCall("getdents64", 217, 61, reads=True),
    SystemCall("stat", 4, 0, reads=True),
    SystemCall("lstat", 6, 0, reads=True),
    SystemCall("newfstatat", 262, 79, reads=True),
    SystemCall("statx", 332, 291, reads=True),
    SystemCall("access", 21, 0, reads=True),
    SystemCall("faccessat", 269, 48, reads=True),
    SystemCall("faccessat2", 439, 439, reads=True),
)
# System calls that the kit makes and Python does not wrap.
OWN = (
    SystemCall("seccomp", 317, 277),
    SystemCall("pidfd_getfd", 438, 438),
    SystemCall("setgroups", 116, 159),
    SystemCall("tgkill", 234, 131),
)


def this_machine() -> Machine:
    """The machine that this process runs on; HarnessError for one that is not in the table."""
    for machine in MACHINES:
        if machine.name == platform.machine():
            return machine
    raise HarnessError(f"system calls of {platform.machine()} cannot be watched: only x86_64 and aarch64 are known")


def numbers(machine: Machine) -> dict[str, int]:
    """The numbers of all rows that a machine has, by name."""
    found = {row.name: row.x86_64 if machine.name == "x86_64" else row.aarch64 for row in (*STOPPED, *OWN)}
    return {name: number for name, number in found.items() if number}


def assemble(machine: Machine, base: int, reads: bool) -> bytes:
    """The filter for watched descriptors from `base` on, as an array of struct sock_filter."""
    steps = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),  # Numbers of another machine would let every call pass unseen.
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine.x32:
        steps += [(_AT_LEAST, 0, 1, machine.x32), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    known = numbers(machine)
    for row in STOPPED:
        if row.name in known and (reads or not row.reads):
            block = _block(row, base, reads)
            steps += [(_EQUAL, 0, len(block), known[row.name]), *block]
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _block(row: SystemCall, base: int, reads: bool) -> list[Step]:
    steps: list[Step] = []
    every_open = reads and row.name in ("open", "openat")
    for condition in () if every_open else row.when:
        steps += _tests(condition, base)
    steps.append((_RETURN, 0, 0, _ERROR | getattr(errno, row.error) if row.error else _NOTIFY))
    if len(steps) > 1:
        steps.append((_RETURN, 0, 0, _ALLOW))
    end = len(steps) - 1
    return [
        (code, end - at - 1 if yes == _ELSE else yes, end - at - 1 if no == _ELSE else no, value)
        for at, (code, yes, no, value) in enumerate(steps)
    ]


def _tests(condition: ArgumentTest, base: int) -> list[Step]:
    """The steps that load an argument and compare it; a match continues with the next step."""
    load = (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * condition.argument)
    match condition.test:
        case "any-bit":
            return [load, (_ANY_BIT, 0, _ELSE, condition.values[0])]
        case "one-of":
            *first, last = condition.values
            rest = len(first)
            return [load, *((_EQUAL, rest - at, 0, v) for at, v in enumerate(first)), (_EQUAL, 0, _ELSE, last)]
        case "given":
            return [load, (_AT_LEAST, _ELSE, 0, _NEGATIVE), (_AT_LEAST, 0, _ELSE, base)]
        case _:
            return [
                load,
                (_AT_LEAST, _ELSE, 0, _NEGATIVE),
                (_AT_LEAST, 1, 0, base),
                (_AT_LEAST, _ELSE, 0, LOW),
            ]
