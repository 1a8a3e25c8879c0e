"""Where servers of the fuzzer live: a fresh tree and a process on it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from scenarios.fuzz.ground import LocalGround
from scenarios.fuzz.http_fuzz import Place
from scenarios.fuzz.subject import Subject, serve_command


def local(root: Path, command: Callable[[str], list[str]] = serve_command) -> Callable[[int], Place]:
    """Places on this host, one after another in one directory. command: how to serve a base."""

    def place(number: int) -> Place:
        tree = root / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        ground = LocalGround(tree)
        subject = Subject(command(ground.base.uri), root / f"server-{number}.log")

        def close() -> None:
            subject.end()

        return Place(ground, subject, close)

    return place
