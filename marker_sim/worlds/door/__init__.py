"""The door: it stops every storage call of unmodified commands below one directory, and the kit performs the call.

front.py     a directory as the storage of a run: its calls pass the interceptor and become effects of the history
known_files.py the last known content of each path, and which paths are names of one file
door.py      watches a directory, starts commands, answers their calls one at a time
calls.py     a call, the decision about it, and its outcome
meanings.py  translates each system call into an act on a path or on a file descriptor
effects.py   acts on paths, performed in the place of the process
open_files.py acts on open file descriptors
paths.py     resolves a path, and decides whether it lies below the directory
held.py      a process stopped at a call: its memory, open files, umask and user; free descriptors for its files
kernel.py    messages of the seccomp listener, and system calls that Python does not wrap
table.py     the system calls with their numbers on x86-64 and aarch64, and the filter that stops them
launch.py    starts and ends a command through the launcher, which is `__main__.py`
available.py whether all of this works on this machine
"""
