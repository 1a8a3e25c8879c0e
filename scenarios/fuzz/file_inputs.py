"""Strategies over damage to the files of a marker directory and of a timeline.

A damage is a value, so that a failing trial prints as the list of what was done. `apply` does it to a directory.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

from scenarios.fuzz.http_inputs import INSTANTS

LONG_LINE_BYTES = 2**20
MANY = 150
_CUT_FROM = "".join(f"p/f{number}.parquet.marker.CREATE\n" for number in range(8)).encode()


class Damage(NamedTuple):
    """One thing done below a directory. where: a path in it. data: content, or the target of a link."""

    kind: str
    where: str
    data: bytes = b""
    repeat: int = 1


LINES = (
    b"good/a.parquet.marker.CREATE\n",
    b"b.parquet.marker.MERGE\n",
    "größe/日.log.1_0-1-0.marker.APPEND\n".encode(),
    b"\n",
    b"\r\n",
    b"crlf.parquet.marker.CREATE\r\n",
    b"\xff\xfe.marker.CREATE\n",
    b"\xed\xa0\x80.marker.CREATE\n",
    b"\xc3.marker.CREATE\n",
    b"nul\x00.marker.CREATE\n",
    b"\x00\x00\x00\x00",
    b"\x00" * 4096 + b"\n",
    b"..\n",
    b"../../../../outside/precious.marker.CREATE\n",
    b"/etc/passwd.marker.CREATE\n",
    b"a/../../b.marker.CREATE\n",
    b".hoodie/" + INSTANTS[0].encode() + b".commit.marker.CREATE\n",
    b".hoodie/20250101000000000.commit.marker.CREATE\n",
    b"p/f_0-0-0_20250101000000000.parquet.marker.MERGE\n",
    b"out/precious.marker.MERGE\n",
    b"MARKERS0\n",
    b"no marker at all\n",
    b"tab\t.marker.CREATE\n",
    "sep\u2028arated.marker.CREATE\n".encode(),
    b"\x85.marker.CREATE\n",
    b"torn.parquet.marker.CRE",
    b"torn.parquet.marker.CREATE",
    b"\xef\xbb\xbfbom.marker.CREATE\n",
    b"s" * 300 + b".marker.CREATE\n",
    b"d/" * 3000 + b"x.marker.CREATE\n",
    b"twice.marker.CREATE\ntwice.marker.CREATE\n",
)
BATCH_NAMES = tuple(f"MARKERS{number}" for number in (0, 1, 2, 3, 19, 20, 99999999999))
ODD_NAMES = (
    "MARKERS007",
    "MARKERS-1",
    "MARKERS",
    "MARKERS ",
    "MARKERS+1",
    "MARKERS1e3",
    "MARKERS٣",
    "MARKERS0.tmp",
    "MARKERS0\n",
    ".MARKERS3.crc",
    ".MARKERS.type.crc",
    "markers0",
    "MARKERS" + "9" * 200,
    "MARKERS0.bak",
)
DIRECT_NAMES = (
    "d.parquet.marker.CREATE",
    "p/q.parquet.marker.MERGE",
    "p/.l.log.1_0-1-0.marker.APPEND",
    "MARKERS5/r.marker.CREATE",
)
TYPES = (
    b"",
    b"TIMELINE_SERVER_BASED",
    b"TIMELINE_SERVER_BASED\n",
    b"DIRECT",
    b"UNKNOWN",
    b"\xff\x00",
    b"T" * 100_000,
    b"TIMELINE_SERVER",
)
LINK_TARGETS = (
    b"{out}/names",
    b"{out}/.hoodie",
    b"{out}/nothing",
    b".",
    b"loop",
    b"MARKERS0",
    b"/dev/zero",
    b"/dev/null",
    b"/proc/self/mem",
)
SPECIALS = ("link", "fifo", "socket", "directory", "denied", "full-directory")
ENTRY_NAMES = (
    "{i}.commit",
    "{i}.commit.requested",
    "{i}.inflight",
    "{i}.deltacommit",
    "{i}.rollback",
    "{i}.rollback.requested",
    "{i}.rollback.inflight",
    "{i}.deltacommit.inflight",
)
ENTRY_INSTANTS = (*INSTANTS, "20260102000000000", "0", "x", "-1", "99999999999999999", "2026" * 30, " ", "٣")
JSONS = (
    b"",
    b"{",
    b"null",
    b"[]",
    b"0",
    b'"x"',
    b"{}",
    b"\xff",
    b"[" * 200_000,
    b'{"a":' * 100_000,
    b'{"partitionToWriteStats": null}',
    b'{"partitionToWriteStats": {"p": null}}',
    b'{"partitionToWriteStats": {"p": [null]}}',
    b'{"partitionToWriteStats": {"p": [{"fileId": 1, "path": 2}]}}',
    b'{"partitionToWriteStats": {"p": [{"fileId": "f", "path": null, "numWrites": "x"}]}}',
    b'{"partitionToWriteStats": {"p": [{"fileId": "f", "path": "../../outside/precious", "numWrites": 1e999}]}}',
    b'{"partitionToWriteStats": {"p": [{"fileId": "f", "path": "p/f.parquet", "numWrites": 1, "prevCommit": 7}]}}',
    b'{"partitionToWriteStats": {"p": [{"fileId": "a", "path": "a"}, {"fileId": 1, "path": "b"}]}}',
    b'{"partitionToWriteStats": {"p": [{"fileId": {}, "path": []}, {"fileId": {}, "path": []}]}}',
    b'{"partitionToWriteStats": {"\\ud800": [{"fileId": "\\udfff", "path": "\\u0000"}]}}',
    b'{"partitionToWriteStats": {"p": [{"fileId": "f", "path": "f", "numWrites": NaN}]}}',
    b'{"partitionToWriteStats": {}, "extraMetadata": null}',
    b'{"partitionToWriteStats": {}, "extraMetadata": {"write": 1e400}}',
    b'{"instantToRollback": null}',
    b'{"instantToRollback": []}',
    b'{"instantToRollback": {"commitTime": null, "action": null}}',
    b'{"instantToRollback": {"commitTime": "../../../outside", "action": "commit"}}',
    b'{"instantToRollback": {"commitTime": "20260101000000000", "action": "../x"}}',
    b'{"instantToRollback": {"commitTime": "20260101000000000", "action": "commit"}}',
    b'{"instantToRollback": {"commitTime": "", "action": ""}}',
    b'{"instantToRollback": {"commitTime": "\\u0000", "action": "commit"}}',
    b"1" * 5000,
    b'{"instantToRollback": {"commitTime": ' + b"9" * 5000 + b', "action": "commit"}}',
)

_CONTENT = st.one_of(
    st.lists(st.sampled_from(LINES), min_size=1, max_size=6).map(b"".join),
    st.binary(max_size=80),
    st.builds(lambda cut: _CUT_FROM[:cut], st.integers(0, len(_CUT_FROM))),
)
_ANY_NAME = st.one_of(st.sampled_from(BATCH_NAMES), st.sampled_from(ODD_NAMES), st.sampled_from(DIRECT_NAMES))
_READ_NAME = st.sampled_from((*BATCH_NAMES[:4], "MARKERS.type", DIRECT_NAMES[0], DIRECT_NAMES[1], "p", "plain"))
_FILE = st.builds(Damage, st.just("file"), _ANY_NAME, _CONTENT)
_TYPE = st.builds(Damage, st.just("file"), st.just("MARKERS.type"), st.sampled_from(TYPES))
_SPECIAL = st.builds(Damage, st.sampled_from(SPECIALS), _READ_NAME, st.sampled_from(LINK_TARGETS))
_RARE = st.sampled_from(
    (
        Damage("huge-line", "MARKERS4", b"x", LONG_LINE_BYTES),
        Damage("many", "many", b"", MANY),
        Damage("instead", "", b"file"),
        Damage("instead", "", b"link"),
    )
)
CONTENT_DAMAGES = st.one_of(_FILE, _FILE, _FILE, _TYPE)
DAMAGES = st.one_of(_FILE, _FILE, _TYPE, _SPECIAL, _SPECIAL)
DIRECTORIES = st.one_of(
    st.lists(CONTENT_DAMAGES, min_size=1, max_size=10),
    st.lists(CONTENT_DAMAGES, min_size=1, max_size=10),
    st.lists(DAMAGES, min_size=1, max_size=8),
    st.tuples(st.lists(CONTENT_DAMAGES, max_size=3), _RARE).map(lambda both: [*both[0], both[1]]),
)
_ENTRY = st.builds(
    lambda name, instant: name.replace("{i}", instant), st.sampled_from(ENTRY_NAMES), st.sampled_from(ENTRY_INSTANTS)
)
_ENTRY_DAMAGE = st.one_of(
    st.builds(Damage, st.just("file"), _ENTRY, st.one_of(st.sampled_from(JSONS), st.binary(max_size=30))),
    st.builds(Damage, st.just("file"), _ENTRY, st.sampled_from(JSONS)),
    st.builds(Damage, st.sampled_from(SPECIALS), _ENTRY, st.sampled_from(LINK_TARGETS)),
    st.builds(
        lambda instant, damage: damage._replace(where=f".temp/{instant}/{damage.where}"),
        st.sampled_from(ENTRY_INSTANTS[:6]),
        CONTENT_DAMAGES,
    ),
)
TIMELINES = st.lists(_ENTRY_DAMAGE, min_size=1, max_size=8)


def apply(damages: Sequence[Damage], directory: Path, out: Path) -> int:
    """Do damages below a directory; how many were not in each other's way. out: a place outside of the base."""
    instead = [damage for damage in damages if not damage.where]
    done = 0
    for damage in instead or damages:
        target = directory / damage.where if damage.where else directory
        with suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.is_symlink() and (damage.kind == "file" or not target.exists()) and not is_special(target):
                _DO[damage.kind](target, damage, out)
                done += 1
    return done


def is_special(path: Path) -> bool:
    """Whether a path is something else than a regular file, a directory or nothing; links are not followed."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _link(target: Path, damage: Damage, out: Path) -> None:
    target.symlink_to(damage.data.decode().replace("{out}", str(out)))


def _socket(target: Path, damage: Damage, out: Path) -> None:
    # The path of a socket is limited to 107 bytes, so it is made under a short name in its open directory.
    opened = os.open(target.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(f"/proc/self/fd/{opened}/.socket")
        target.with_name(".socket").rename(target)
    finally:
        os.close(opened)


def _denied(target: Path, damage: Damage, out: Path) -> None:
    target.write_bytes(b"denied.parquet.marker.CREATE\n")
    target.chmod(0)


def _full_directory(target: Path, damage: Damage, out: Path) -> None:
    target.mkdir()
    (target / "MARKERS0").write_bytes(b"deeper.marker.CREATE\n")
    (target / "inner.marker.CREATE").write_bytes(b"")


def _many(target: Path, damage: Damage, out: Path) -> None:
    target.mkdir()
    for number in range(damage.repeat):
        (target / f"f{number}.parquet.marker.CREATE").touch()


def _instead(target: Path, damage: Damage, out: Path) -> None:
    if damage.data == b"file":
        target.write_bytes(b"a.marker.CREATE\n")
    else:
        target.symlink_to(out / ".hoodie" / ".temp" / INSTANTS[0])


_DO = {
    "file": lambda target, damage, out: target.write_bytes(damage.data),
    "huge-line": lambda target, damage, out: target.write_bytes(b"ok.marker.CREATE\n" + damage.data * damage.repeat),
    "many": _many,
    "link": _link,
    "fifo": lambda target, damage, out: os.mkfifo(target),
    "socket": _socket,
    "directory": lambda target, damage, out: target.mkdir(),
    "full-directory": _full_directory,
    "denied": _denied,
    "instead": _instead,
}
