"""docs/glossary.md explains words that the linked pages use, in alphabetical order."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
ENTRIES = re.findall(r"^\*\*(.+?)\*\*: (.+)$", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.M)


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
