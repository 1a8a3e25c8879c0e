"""Tests of a group are one unit of work for pytest-xdist, so that one worker computes what they share, once."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.scheduler import LoadGroupScheduling

import conftest

GROUP = "of the tests of groups"


@pytest.mark.xdist_group(GROUP)
@pytest.mark.skipif(not hasattr(pytest.Item, "id"), reason="before pytest 9.2 pytest-xdist names the group itself")
def test_xdist_reads_the_group_in_the_name_of_a_test_and_reports_do_not(request: pytest.FixtureRequest) -> None:
    name, session = request.node.nodeid, SimpleNamespace(items=[request.node])
    sending: Any = conftest.pytest_collection_finish(session)  # type: ignore[arg-type]
    next(sending)
    assert LoadGroupScheduling._split_scope(sending, request.node.nodeid) == GROUP
    sending.close()
    assert request.node.nodeid == name and GROUP not in os.environ["PYTEST_CURRENT_TEST"]
