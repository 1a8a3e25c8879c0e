"""The filter, as a program for the kernel's packet filter (BPF): which calls stop at the kit.

A filter sees numbers and no paths. Files below the root have numbers from the base upwards, because the kit chooses
them, so a write to a socket never stops and one to a watched file always does. Each call is one block: compare its
number, else jump past the block; within it every way ends with an answer.
"""

from __future__ import annotations

import errno
import struct

from marker_sim.worlds.door.table import LOW, STOPPED, ArgumentTest, Machine, SystemCall, numbers

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD|W|ABS, BPF_JMP|..., BPF_RET
_KILL, _NOTIFY, _ERROR, _ALLOW = 0x8000_0000, 0x7FC0_0000, 0x0005_0000, 0x7FFF_0000  # SECCOMP_RET_*
_NEGATIVE = 0x8000_0000
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16  # In struct seccomp_data.
Step = tuple[int, int, int, int]
_ELSE = -1  # A jump to the end of its block, where the call is allowed.


def assemble(machine: Machine, base: int, reads: bool) -> bytes:
    """The program for files with numbers from `base` upwards, as an array of struct sock_filter."""
    steps = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _KILL),  # A program for another machine could make every call unseen.
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
    """The argument is loaded and compared: onwards when it fits."""
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
