"""docs/troubleshooting.md quotes messages that the kit still says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from properties.package_tree import MODULES, ROOT, nodes_of

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
QUOTES = [line for block in re.findall(r"```text\n(.*?)\n```", PAGE, re.S) for line in block.splitlines()]
WORDS_LEAST = 15
SHARE_LEAST = 0.33  # Of a quote; the rest is what a message fills in: names, numbers, what others said.


def _templates() -> Iterator[list[str]]:
    """The fixed parts of every text in the package, in order; what is filled in stands between them."""
    for path in MODULES:
        for node in nodes_of(path):
            match node:
                case ast.Constant(value=str(text)):
                    yield [text]
                case ast.JoinedStr(values=values):
                    yield [
                        part.value for part in values if isinstance(part, ast.Constant) and isinstance(part.value, str)
                    ]


@cache
def _long() -> list[list[str]]:
    return [parts for parts in _templates() if len("".join(parts)) >= WORDS_LEAST]


def _said(quote: str) -> float:
    """The share of a quote that texts of the package say."""
    told = [False] * len(quote)
    for parts in _long():
        if not all(part in quote for part in parts):
            continue
        found = re.search(".*?".join(f"({re.escape(part)})" for part in parts), quote)
        if found is None:
            continue
        for group in range(1, len(parts) + 1):
            told[found.start(group) : found.end(group)] = [True] * len(parts[group - 1])
    return sum(told) / len(quote)


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: quote[:60])
def test_a_quoted_message_is_one_that_the_kit_says(quote: str) -> None:
    assert _said(f"{quote}\n") >= SHARE_LEAST


def test_words_that_nobody_says_are_noticed() -> None:
    assert len(QUOTES) > 15
    assert (
        _said("marker-sim: the moon is not in its place; wait until it comes back, or give another one") < SHARE_LEAST
    )
