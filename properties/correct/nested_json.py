"""Odd: a directory is one JSON tree by path segments; a leaf says which request made it, so that resends are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from marker_sim.markers.store import Context, Created
from marker_sim.seams import Conflicted, Content, PreconditionFailed
from properties.correct.shape import AGAIN_MS, Shape


class Markers(Shape):
    """{"d": {"2020": {"f": {"a.marker.CREATE": "request"}}}}: directories and files of a node are kept apart."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.path = f"{self.prefix}tree.json"

    def create(self, name: str, request: str = "") -> Created:
        """A resend of the request that created the marker is answered so again, also by another server."""
        self.check(name)
        while True:
            there = self.read(self.path)
            tree = _tree(there)
            node = tree
            *folders, leaf = name.split("/")
            for folder in folders:
                node = node.setdefault("d", {}).setdefault(folder, {})
            files = node.setdefault("f", {})
            if leaf in files:
                return Created.CREATED if request and files[leaf] == request else Created.EXISTS
            files[leaf] = request
            try:
                self.replace(self.path, json.dumps(tree, indent=1).encode(), there)
            except (PreconditionFailed, Conflicted):
                self.runtime.sleep(AGAIN_MS)
                continue
            return Created.CREATED

    def list_all(self) -> tuple[str, ...]:
        """Every leaf."""
        return tuple(_leaves(_tree(self.read(self.path)), ""))


def _tree(there: Content | None) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(there.data) if there else {}
    return tree


def _leaves(node: dict[str, Any], above: str) -> Iterator[str]:
    for leaf in node.get("f", {}):
        yield f"{above}{leaf}"
    for folder, below in node.get("d", {}).items():
        yield from _leaves(below, f"{above}{folder}/")
