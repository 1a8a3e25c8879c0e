"""Who reads the output of a command, and in which encoding, changes neither its exit code nor what it writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from marker_sim.cli import main
from properties.volume import CI_ONLY, volume

ROOT = Path(__file__).parent.parent.parent
FEW = ("--mode", "direct", "--storage", "hdfs", "--runs", "4", "--jobs", "1", "--seed", "1", "--guarantees", "G1")
BROKEN = ("verify", "--sut", "mutant:ack-before-flush", "--mode", "timeline", "--storage", "local", "--runs", "6",
          "--seed", "1", "--stop-at-first", "--guarantees", "G1")  # fmt: skip
SETTLED = "from marker_sim.cli.output import settle_outputs; settle_outputs(); import sys; "


def ended(
    folder: Path,
    *words: str,
    program: tuple[str, ...] = ("-m", "marker_sim"),
    read: bool = True,
    **environment: str,
) -> tuple[int, bytes]:
    """The exit code of a command and all that it printed; read: whether anybody reads that, on either output."""
    ours, theirs = os.pipe()
    if not read:
        os.close(ours)
    env = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"} | environment
    process = subprocess.Popen(
        [sys.executable, *program, *words], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    try:
        printed = Path(f"/dev/fd/{ours}").read_bytes() if read else b""
        return process.wait(60), printed
    finally:
        process.kill()
        if read:
            os.close(ours)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("verify", *FEW), (0, 3)),
        pytest.param(BROKEN, (1,), marks=CI_ONLY),
        (("verify", "--runs", "none"), (2,)),
        (("--help",), (0,)),
    ],
)
def test_a_closed_pipe_changes_no_exit_code(
    words: tuple[str, ...],
    expected: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, printed = main(words), "".join(capfd.readouterr())
    assert printed and "Traceback" not in printed
    assert code in expected
    again, _ = ended(tmp_path, *words, read=False)
    assert again == code
    if words[0] == "verify" and "none" not in words:
        assert len(list(tmp_path.glob("marker-sim-report/**/report.html"))) == 2, "the report is written all the same"


def test_what_an_encoding_cannot_print_is_escaped(tmp_path: Path) -> None:
    assert main((*BROKEN, "--report", str(tmp_path / "r"))) == 1
    for encoding in ("ascii:strict", "iso-8859-1", "ascii")[: volume(3, quick=2)]:
        code, printed = ended(tmp_path, "judge", "r", PYTHONIOENCODING=encoding)
        assert (code, b"violated" in printed, b"Traceback" in printed) == (1, True, False), printed
    said = SETTLED + "print('\u2026\xf6'); print('\u2026\xf6', file=sys.stderr)"
    for encoding, shown in (("ascii:strict", b"\\u2026\\xf6"), ("iso-8859-1", b"\\u2026\xf6")):
        assert ended(tmp_path, said, program=("-c",), PYTHONIOENCODING=encoding) == (0, b"\n".join([shown] * 2) + b"\n")


def test_what_nobody_reads_any_more_is_dropped(tmp_path: Path) -> None:
    for stream in ("stdout", "stderr"):
        much = SETTLED + f"[print('x' * 100_000, file=sys.{stream}, flush=True) for _ in range(9)]; sys.exit(7)"
        assert ended(tmp_path, much, program=("-c",), read=False) == (7, b"")
