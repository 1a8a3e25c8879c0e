"""Nothing escapes: a directory that is rebuilt from the calls alone is the one that programs left."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from properties.faces.worlds import CallOutcome, Decision, Door, FileCall
from properties.real.door.behind import ended

GIT = """
git init -q . && for i in 1 2 3; do seq $((i * 300)) > f$i; git add .; git commit -qm c$i; done
git checkout -qb other; git rm -q f1; git commit -qm d; git gc -q; git fsck
"""
TOOLS = """
seq 1 20000 > a; sort -r a -o b; sed -i s/1/2/ b; dd if=a of=c bs=777 conv=fsync status=none; truncate -s 5 c
dd if=/dev/zero of=z bs=4096 count=3 oflag=direct status=none; fallocate -l 100 d; mkdir u; cp -r a b c z d u
tar cf t.tar a b; mkdir w; tar xf t.tar -C w; gzip w/a; split -l 5000 a part.; tee t1 t2 < a > /dev/null
cat a b >> cat; rm b; ln a hard; echo x >> hard; mv w v; install -m 600 a v/i
dd if=a of=r bs=1000 count=5 status=none; dd if=a of=r bs=100 seek=10 count=1 conv=notrunc status=none
awk '{print > "awk" ($1 % 3)}' a; for i in 1 2 3 4; do (seq $i 2000 > s$i; mv s$i m$i) & done; wait
"""


@dataclass(slots=True, eq=False)
class Rebuilt:
    """Files by path, from calls and how they ended; two names of one file share their content."""

    files: dict[str, bytearray] = field(default_factory=dict)

    def applied(self, call: FileCall, outcome: CallOutcome) -> None:  # noqa: C901
        if not outcome.done:
            return
        match call.operation:
            case "open":
                if call.size_before is None:
                    self.files[call.path] = bytearray()
                elif call.flags & os.O_TRUNC:
                    self.files[call.path].clear()
            case "write":
                content = self.files[call.path]
                content.extend(bytes(max(0, call.offset - len(content))))
                content[call.offset : call.offset + outcome.result] = call.data[: outcome.result]
            case "cut" | "allocate":
                content = self.files[call.path]
                content.extend(bytes(max(0, call.size - len(content))))
                if call.operation == "cut":
                    del content[call.size :]
            case "delete":
                self.files[f"{call.path} (deleted)"] = self.files.pop(call.path, bytearray())
            case "link":
                self.files[call.target] = self.files[call.path]
            case "rename":
                for path in list(self.files):
                    if path == call.path or path.startswith(f"{call.path}/"):
                        self.files[call.target + path[len(call.path) :]] = self.files.pop(path)

    def named(self) -> dict[str, bytes]:
        return {path: bytes(content) for path, content in self.files.items() if not path.endswith(" (deleted)")}


@pytest.mark.parametrize(("tool", "script"), [("git", GIT), ("bash", TOOLS)], ids=["git", "tools"])
def test_what_was_shown_is_all_that_happened(root: Path, tool: str, script: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool} on PATH")
    rebuilt = Rebuilt()
    people = {f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    with Door(root, lambda call: Decision(), rebuilt.applied) as door:
        command = door.start(["bash", "-ec", script], people | {"HOME": str(root.parent)}, process="p", folder=root)
        code, said = ended(command)
        assert code == 0, said
        assert door.unseen == ()
    there = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert len(there) > 20 and rebuilt.named() == there
