"""Tries whether the door works on this machine, and if not, which part the kernel refuses."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from marker_sim.errors import HarnessError
from marker_sim.worlds.door.calls import Decision, FileCall
from marker_sim.worlds.door.door import Door

_END_S = 20.0
_WRITES = "open('a', 'wb', 0).write(b'seen')"


def refused() -> str:
    """Why storage calls of processes cannot be watched on this machine, as a sentence; "" when they can."""
    seen: list[str] = []

    def decide(call: FileCall) -> Decision:
        seen.append(call.operation)
        return Decision()

    with tempfile.TemporaryDirectory() as folder:
        try:
            door = Door(Path(folder), decide)
        except (HarnessError, OSError) as error:
            return str(error)
        try:
            command = door.start([sys.executable, "-I", "-S", "-c", _WRITES], {}, process="probe", folder=Path(folder))
            output, _ = command.popen.communicate(timeout=_END_S)
        except HarnessError as error:
            return str(error)
        except subprocess.TimeoutExpired:
            return f"a call that stopped was not answered within {_END_S:.0f} s"
        finally:
            door.close()
        if door.troubles:
            return str(door.troubles[0])
        if seen != ["open", "write"] or (Path(folder) / "a").read_bytes() != b"seen":
            return f"the calls of a program that writes a file were seen as {seen}; it said {output.decode()!r}"
    return ""
