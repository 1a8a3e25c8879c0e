"""`--sut http` on a disk: servers broken in one way each are accused of what they break.

A file of its own, for some of them are found by waiting for what they never do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from properties.volume import CI_ONLY
from scenarios.stored_plans import caught
from scenarios.test_http import START, asked

SEARCH_S = 240.0


@pytest.mark.parametrize(
    ("broken", "guarantee"),
    [
        ("ack-before-flush", "G1"),
        ("joins-after-restart", "G4"),
        ("forgets-after-restart", "G5"),
        ("stale-list", "G11"),
        ("deaf-after-a-pause", "G6"),
        pytest.param("stays-busy", "G6", marks=CI_ONLY),  # By default test_walks.py has it.
        ("loses-workers", "G7"),
        ("accepts-anything", "G12"),
        ("splits-oddly", "G4"),
    ],
)
def test_a_broken_server_is_accused_of_what_it_breaks(tmp_path: Path, broken: str, guarantee: str) -> None:
    request = replace(asked(tmp_path, start=f"{START} --broken {broken}"), budget_s=SEARCH_S, runs=None)
    found = caught(f"{broken}-local", guarantee, request)
    assert found is not None and found.evidence
