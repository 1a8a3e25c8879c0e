"""What a hostile round sends: nothing that leaves the kit's own storage, and nothing that a correct server accepts."""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import urlencode

import pytest

from marker_sim.errors import UsageError
from marker_sim.names import MarkerDirectory, check_marker_name
from marker_sim.serve.bases import locate, parse_base
from marker_sim.targets.batching import batching, parse_batch_threads
from marker_sim.worlds.http.hostile_rounds import KEPT, REFUSED, malformed, spellings
from marker_sim.worlds.http.http_client import interpret

PLACE = MarkerDirectory("r1/t3", "20260101000000005")
ROOTS = ("/tmp/kit/storage", "s3a://lake", "file:/tmp/kit/storage")


@pytest.mark.parametrize("root", ROOTS)
def test_every_malformed_directory_lies_below_the_rounds_own_and_is_refused(root: str) -> None:
    sent = malformed(PLACE, lambda place: f"{root}/{place.path}")
    assert sent
    for target, address in sent:
        start = root.partition("://")[2] or root.removeprefix("file:")
        path = posixpath.normpath(address.partition("://")[2] or address.removeprefix("file:"))
        assert path == f"{start}/{target}" and path.startswith(f"{start}/r1/")
        with pytest.raises(Exception, match="markerdirpath is refused"):
            locate(address, (parse_base(root if "://" in root else root.removeprefix("file:")),))


def test_spellings_are_one_directory(tmp_path: Path) -> None:
    address = f"{tmp_path}/{PLACE.path}"
    base = parse_base(str(tmp_path))
    assert len(spellings(address)) == 3 and len(spellings(f"s3a://lake/{PLACE.path}")) == 2
    assert len({locate(written, (base,)) for written in spellings(address)}) == 1


def test_what_must_be_refused_is_refused_by_the_reference_and_is_no_text_or_has_control_characters() -> None:
    for name in REFUSED:
        if isinstance(name, bytes):
            with pytest.raises(UnicodeDecodeError):
                name.decode()
        else:
            with pytest.raises(ValueError):
                check_marker_name(name)
    letters = {letter for name in REFUSED if isinstance(name, str) for letter in name}
    assert letters >= {chr(code) for code in (*range(32), 0x7F, 0x85)}
    assert not letters & {letter for name in KEPT for letter in name if not letter.isascii()}
    assert all(len(urlencode({"markername": name})) < 7_000 for name in KEPT), (
        "a longer request line has limits of its own"
    )


@pytest.mark.parametrize("operation", ["list", "create", "exists"])
def test_a_reply_that_does_not_parse_is_shown_as_it_came(operation: str) -> None:
    body = b'["a\rb\xff' + b"x" * 300
    error = interpret(operation, 200, body).error or ""
    assert r"""b'["a\rb\xffx""" in error and error.endswith(f"and {len(body) - 160} bytes more")
    assert interpret(operation, 400, b"no\r\nname").error == r"400 no\r\nname"


def test_what_a_server_was_not_told_is_hudis_default_or_what_the_user_said() -> None:
    told = batching("s --port {port} -n {threads} -i {interval_ms}", None)
    assert told.threads == (1, 2, 3, 20) and 120 in told.intervals_ms
    untold = batching("s --port {port}", None)
    assert (untold.threads, untold.intervals_ms) == ((20,), (50,))
    assert all("Hudi's default" in words for words in untold.words.values())
    for start in ("s {port}", "s {port} {threads}"):
        assert batching(start, 7).threads == (7,) and "--batch-threads" in batching(start, 7).words["batch threads"]
    for text in ("0", "1001", "x", "-1", "²", ""):
        with pytest.raises(UsageError, match="from 1 to 1000"):
            parse_batch_threads(text)
