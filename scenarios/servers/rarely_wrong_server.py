"""marker_server.py with one mistake each that shows under one condition alone (outcome/conditions.py).

python rarely_wrong_server.py --mistake NAME --port N --storage DIR_OR_URI ...    further options: of marker_server.py
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.servers import marker_files, marker_server

ANSWERED = 8


class _ShrugsAtType(marker_files.S3Files):
    """Goes on when the type file could not be written, and never tries again."""

    _shrugged = False

    def write_type(self) -> None:
        try:
            if not self._shrugged:
                super().write_type()
        except OSError:
            self._shrugged = True


class _SendsWhatChanged(marker_files.S3Files):
    """Replaces an object by its own content, though another server changed it meanwhile."""

    def write(self, index: int, data: bytes, blindly: bool) -> None:
        try:
            super().write(index, data, blindly)
        except marker_files.Changed:
            super().write(index, data, blindly=True)


class _TakesChangedForExists(marker_server.Directory):
    """Answers "exists" to a batch whose object another server changed."""

    def _write(self, index: int, data: bytes) -> None:
        with suppress(marker_files.Changed):
            super()._write(index, data)
            return
        self._lost = True

    _lost = False

    def _written(self, batch: list[marker_server.Request], index: int) -> list[tuple[marker_server.Request, bool]]:
        self._lost = False
        answers = super()._written(batch, index)
        return [(request, False) for request, _ in answers] if self._lost else answers


class _ReadsOnce(marker_files.LocalFiles):
    """Reads a directory once and trusts its memory from then on."""

    _read = False

    def refresh(self) -> None:
        if not self._read:
            super().refresh()
        self._read = True


class _DropsTheLastLine(marker_server.Directory):
    """Takes the last line of a file for torn when it first reads a directory, where a file has several."""

    def _load(self) -> None:
        first = not self._loaded
        super()._load()
        for index, data in self.files.contents.items() if first else ():
            lines = data.splitlines(keepends=True)
            self.files.contents[index] = b"".join(lines[:-1] or lines)


class _DecodesTwice(marker_server.Service):
    """Decodes what stands for the marker directory once more."""

    def answer(self, method: str, route: str, parameters: dict[str, str]) -> Any:
        given = parameters.get("markerdirpath", "")
        return super().answer(method, route, parameters | {"markerdirpath": unquote_plus(given)})


class _AnswersSome(marker_server.Directory):
    """Answers the first creates of a batch that could not be written, and no others."""

    def _over(self, batch: list[marker_server.Request], index: int) -> None:
        super()._over(batch, index)
        if isinstance(sys.exc_info()[1], OSError):
            del batch[ANSWERED:]


class _KnowsWhatFailed(marker_server.Directory):
    """Answers "exists" for a name whose batch could not be written."""

    _failed: frozenset[str] = frozenset()

    def _over(self, batch: list[marker_server.Request], index: int) -> None:
        super()._over(batch, index)
        if isinstance(sys.exc_info()[1], OSError):
            self._failed |= {request.name for request in batch}

    def _known(self) -> set[str]:
        return super()._known() | self._failed

    def names(self) -> list[str]:
        return [name for name in super().names() if name not in self._failed]


class _ShortForIdentity(marker_server.Service):
    """Leaves the last name out of listings for clients that read no content coding."""

    def answer(self, method: str, route: str, parameters: dict[str, str]) -> Any:
        value = super().answer(method, route, parameters)
        return value[:-1] if isinstance(value, list) and _CODING.plain else value


class _Coding(threading.local):
    plain = False


_CODING = _Coding()


class _Handler(marker_server.Handler):
    def do_GET(self) -> None:
        """Answer one request."""
        _CODING.plain = self.headers.get("Accept-Encoding") == "identity"
        super().do_GET()

    do_POST = do_GET


ON_S3 = ("shrugs-at-type", "sends-what-changed", "takes-changed-for-exists")  # Mistakes with objects.
# What stands for which name of marker_server.py.
MISTAKES: dict[str, dict[str, type]] = {
    "shrugs-at-type": {"S3Files": _ShrugsAtType},
    "sends-what-changed": {"S3Files": _SendsWhatChanged},
    "takes-changed-for-exists": {"Directory": _TakesChangedForExists},
    "reads-once": {"LocalFiles": _ReadsOnce},
    "drops-the-last-line": {"Directory": _DropsTheLastLine},
    "decodes-twice": {"Service": _DecodesTwice},
    "short-for-identity": {"Service": _ShortForIdentity, "Handler": _Handler},
    "answers-some": {"Directory": _AnswersSome},
    "knows-what-failed": {"Directory": _KnowsWhatFailed},
}


def main() -> None:
    """Serve until killed."""
    at = sys.argv.index("--mistake")
    mistake = sys.argv[at + 1]
    del sys.argv[at : at + 2]
    if mistake not in MISTAKES:
        sys.exit(f"{mistake!r} is none of {', '.join(MISTAKES)}")
    for name, part in MISTAKES[mistake].items():
        setattr(marker_server, name, part)
    marker_server.main()


if __name__ == "__main__":
    main()
