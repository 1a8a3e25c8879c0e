"""Stories: failures that most likely have one defect in common, whatever mode, storage or night they are of."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol, TypeVar

from marker_sim.judges.findings import UNEXPLAINED


class Told(Protocol):
    """A failure as far as stories go.

    guarantee: its id. entries: the size of its plan.
    leads: whether a plan was made small for it.
    links: what it shares with the failures of the same defect: a run, a small plan that breaks both, a cause.
    """

    @property
    def guarantee(self) -> str: ...
    @property
    def entries(self) -> int: ...
    @property
    def leads(self) -> bool: ...
    @property
    def links(self) -> frozenset[Hashable]: ...


Member = TypeVar("Member", bound=Told)


def cause_link(cause: str) -> frozenset[Hashable]:
    """The link of a cause; nothing for one that is not known."""
    return frozenset() if cause in ("", UNEXPLAINED) else frozenset((("cause", cause),))


def stories(failures: Iterable[Member]) -> tuple[tuple[Member, ...], ...]:
    """Failures that are linked, directly or by others; first in each story the one that it is told by.

    That is the one with the smallest plan, of those whose plan was made small if there are any.
    """
    groups: list[tuple[set[Hashable], list[tuple[int, Member]]]] = []
    for number, failure in enumerate(failures):
        links, members = set(failure.links), [(number, failure)]
        apart = []
        for group in groups:
            if group[0] & links:
                links |= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (links, sorted(members, key=lambda each: each[0]))]
    groups.sort(key=lambda group: group[1][0][0])
    return tuple(
        tuple(sorted((failure for _, failure in story), key=lambda failure: (not failure.leads, failure.entries)))
        for _, story in groups
    )


def breaks_besides(story: Sequence[Told], what: str = "failure") -> str:
    """What a story breaks besides the guarantee that it is told by: "also breaks G3, G4 (5 more failures)", or ""."""
    told, *others = story
    if not others:
        return ""
    names = sorted({each.guarantee for each in others} - {told.guarantee}, key=lambda name: int(name[1:]))
    more = f"{len(others)} more {what}{'' if len(others) == 1 else 's'}"
    return f"also breaks {', '.join(names)} ({more})" if names else f"{more} of the same guarantee"
