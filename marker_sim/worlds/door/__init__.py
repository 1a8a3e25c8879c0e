"""The door: every storage call of unmodified commands below one directory stops at the kit, which then does it.

front.py     a directory as the storage of a run: its calls pass the interceptor and become effects of the history
known_files.py what each path held after them, and which paths are names of one file
door.py      watches a directory, starts commands, answers their calls one at a time
calls.py     a call, what can become of it, what became of it
meanings.py  the meaning of each system call: an act on a path or on a number, by the name of the call
effects.py   acts on paths, done in the place of the process
open_files.py acts on open files by their numbers
paths.py     where a path leads, and whether that is below the directory
held.py      a held process: its memory, open files, umask and user; free numbers for its files
kernel.py    messages of the listener, and calls that Python has no names for
table.py     the system calls, with their numbers on x86-64 and aarch64, and the filter that stops them
launch.py    starting and ending a command through the launcher, which is `__main__.py`
available.py whether all this works here
"""
