"""The directory of a report: one writer at a time; an earlier report is moved aside and never deleted.

    DIR/                  the newest report
    DIR/earlier/<time>/   an earlier report; <time> in UTC, with a number where a second had two

Another writer, foreign files and missing space are refused before any file is moved; an interrupted move is undone. A
SIGKILL during a move may leave an earlier report in two places.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from marker_sim.errors import HarnessError, UsageError
from marker_sim.surroundings.files import held

EARLIER = "earlier"
PROBE_BYTES = 1 << 20
_COMMAND = Path("logs") / "command.txt"
# Everything that a run writes; `logs` last, because its command file marks a directory as a report.
_OURS = (
    "verdict.json",
    "plan.json",
    "history.parquet",
    "history.jsonl",
    "report.html",
    "mutants.json",
    "mutants.txt",
    "failures",
    "against",
    "audit.json",
    "findings.parquet",
    "audit.html",
    "logs",
)
_TIME_FORMAT = "%Y-%m-%dT%H%M%SZ"
_TIME_LENGTH = len("2026-01-01T000000Z")
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOTSUP)


@contextmanager
def open_report(directory: Path, argv: Sequence[str]) -> Iterator[Path | None]:
    """Prepare a directory for a new report, locked for the block; returns where the earlier report went, if any.

    UsageError when it is no directory, another marker-sim writes to it, or it holds files and no report (nothing is
    touched then); HarnessError when it cannot be written.
    """
    if os.path.lexists(directory) and not directory.is_dir():
        raise UsageError(f"--report {directory} is not a directory; give an empty or a new one")
    with ExitStack() as stack:
        with writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
            hold(directory, stack)
            _refuse_other_files(directory)
            with tempfile.TemporaryFile(dir=directory) as probe:
                probe.write(bytes(PROBE_BYTES))
            moved = _begin(directory, argv)
        yield moved


def newest_earlier(directory: Path) -> Path | None:
    """The newest report that was moved aside in a directory."""
    found = [path for path in (directory / EARLIER).glob("*") if (path / "verdict.json").is_file()]
    return max(found, key=lambda path: (path.name[:_TIME_LENGTH], len(path.name), path.name), default=None)


@contextmanager
def writing(directory: Path) -> Iterator[None]:
    """A context in which files of a report are written; HarnessError when its directory cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.filename and Path(os.fsdecode(error.filename)) != directory:
            reason = f"{reason}: {os.fsdecode(error.filename)}"
        raise HarnessError(
            f"the report directory {directory} cannot be written ({reason}); free space there or give another with"
            " --report"
        ) from error


def hold(directory: Path, stack: ExitStack) -> None:
    """Lock the directory itself, which leaves no file; UsageError when another process holds it."""
    try:
        stack.enter_context(held(directory))
    except BlockingIOError as error:
        raise UsageError(
            f"{directory} is in use by another marker-sim process; wait until it ends, or give another directory"
        ) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:  # Some network file systems cannot lock a directory.
            raise


def _refuse_other_files(directory: Path) -> None:
    present = sorted(name for name in os.listdir(directory) if name != EARLIER)
    begun = present == ["logs"] and not os.listdir(directory / "logs")  # A run that was killed as it began.
    if present and not begun and not (directory / _COMMAND).exists():
        raise UsageError(
            f"--report {directory} holds {present[0]!r} and no earlier report; give an empty or a new directory, so"
            " that nothing of yours is replaced"
        )


def _begin(directory: Path, argv: Sequence[str]) -> Path | None:
    """Move an earlier report aside, completely or not at all; returns its new place, None without one."""
    names = [name for name in _OURS if os.path.lexists(directory / name)]
    aside = new_folder(directory / EARLIER) if names else None
    try:
        for name in names:
            assert aside is not None
            os.rename(directory / name, aside / name)
        (directory / "logs").mkdir()
        words = shlex.join(["marker-sim", *argv])
        (directory / _COMMAND).write_text(f"{words}\n", encoding="utf-8", errors="surrogateescape")
    except BaseException:
        if aside is not None:
            _put_back(directory, aside)
        raise
    return aside


def _put_back(directory: Path, aside: Path) -> None:
    """Put back what was moved; the new report has at most a command file by then."""
    if (aside / "logs").is_dir():
        shutil.rmtree(directory / "logs", ignore_errors=True)
    for name in os.listdir(aside):
        os.rename(aside / name, directory / name)
    aside.rmdir()


def new_folder(parent: Path) -> Path:
    """A new folder named by the time."""
    parent.mkdir(exist_ok=True)
    now = datetime.now(UTC).strftime(_TIME_FORMAT)
    number = 1
    while True:
        folder = parent / (now if number == 1 else f"{now}-{number}")
        with suppress(FileExistsError):
            folder.mkdir()
            return folder
        number += 1
