"""Marker stores in any language: a program that speaks JSON lines, behind the seams that Python factories work with.

The program touches no storage and no clock of its own. It is sent calls, asks the kit for every storage operation, and
so lives in whatever world the kit runs (docs/command.md is the protocol).

    actor of a process ── call ──► ProgramSession ── line ──► program
            ▲                        │      ▲                   │ lines, the last one is "wait"
            └──────── answer ────────┘      └─── done ── storage operations, by actors of the process

messages.py  what a program prints, checked
programs.py  a program of the operating system: a line to it, its lines back, within a deadline; the pool of a command's
session.py   one process of a run, and the marker stores in it
system.py    a program as a system under test, and the parts of a write that it has of its own
"""

PREFIX = "command:"  # Begins the name of a program as a system; its command line follows.
