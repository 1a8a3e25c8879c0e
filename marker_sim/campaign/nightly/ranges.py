"""Which numbers of a stream were handed out: ranges without overlap, so that none is done twice and none left out."""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field


@dataclass(slots=True)
class Ranges:
    """Half-open ranges of whole numbers from `base` on, joined where they touch."""

    base: int = 0
    taken: list[tuple[int, int]] = field(default_factory=list)

    def take(self, size: int, end: int | None = None) -> tuple[int, int] | None:
        """The lowest free (first, count) of at most `size` numbers below `end`, now taken; None when there is none."""
        first, limit = self.base, end
        for begin, stop in self.taken:
            if begin > first:
                limit = begin if end is None else min(begin, end)
                break
            first = stop
        count = size if limit is None else min(size, limit - first)
        if count <= 0:
            return None
        self.add(first, count)
        return first, count

    def add(self, first: int, count: int) -> None:
        """Take exactly these; AssertionError when one of them was taken already, for then it would count twice."""
        insort(self.taken, (first, first + count))
        joined: list[tuple[int, int]] = []
        for begin, stop in self.taken:
            assert not joined or begin >= joined[-1][1], f"numbers from {begin} on were done twice"
            if joined and begin == joined[-1][1]:
                joined[-1] = (joined[-1][0], stop)
            else:
                joined.append((begin, stop))
        self.taken = joined

    def give_back(self, first: int, count: int) -> None:
        """Free a range that was taken and not done."""
        kept: list[tuple[int, int]] = []
        for begin, stop in self.taken:
            if begin <= first and first + count <= stop:
                kept += [(a, b) for a, b in ((begin, first), (first + count, stop)) if a < b]
            else:
                kept.append((begin, stop))
        self.taken = kept

    def whole(self, end: int) -> bool:
        """Whether everything from the base up to `end` is taken."""
        return self.taken == [(self.base, end)]
