"""docs/glossary.md explains words that the linked pages use, in alphabetical order."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from properties.faces.judges import VerdictRow
from properties.package_tree import PACKAGE, nodes_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^\*\*(.+?)\*\*: (.+)$", PAGE, re.M)


def test_each_word_is_used_by_the_page_that_its_entry_links_to() -> None:
    assert len(ENTRIES) > 60
    for word, text in ENTRIES:
        (page,) = re.findall(r"\[[\w-]+\]\(([\w-]+\.md)(?:#[\w-]+)?\)$", text)
        used = (DOCS / page).read_text(encoding="utf-8").lower()
        for one in re.sub(r" \(.*\)| of a fault$", "", word).lower().split(", "):
            assert one.rstrip("e") in used, f"{page} does not use {one!r}"


def test_the_words_are_in_alphabetical_order() -> None:
    words = [word.lower() for word, _ in ENTRIES]
    assert words == sorted(set(words))


def test_each_field_of_verdict_json_is_explained() -> None:
    made = [node for node in nodes_of(PACKAGE / "report" / "verdict.py") if isinstance(node, ast.Dict)]
    fields = {str(key.value) for node in made for key in node.keys if isinstance(key, ast.Constant)}
    fields -= {"name"}  # Of the profile.
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("| "))
    wanted = {*fields, *VerdictRow.__dataclass_fields__, "walk", "canary", "trouble", "against", "guarantee", "cause"}
    assert len(fields) > 25 and sorted(name for name in wanted if f"`{name}`" not in table) == []
