"""`verify --against` with two real servers: a broken and a correct one get the same plans."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from properties.faces.cli import carry_out, parse_request
from properties.volume import CI_ONLY
from scenarios.test_http import START


@CI_ONLY
def test_the_plan_that_fails_on_one_server_holds_on_the_other(tmp_path: Path) -> None:
    asked = parse_request(
        sut="http", start=f"{START} --broken memory-only", against="http", against_start=START, mode="timeline",
        storage="local", budget="18s", seed="3", guarantees=None, profile=None, expect=None, report=str(tmp_path),
        argv=("verify",),
    )  # fmt: skip
    assert asked.against is not None
    assert carry_out(replace(asked, runs=1), as_json=False) == 1, "the first plan shows it"
    against = json.loads((tmp_path / "verdict.json").read_text())["against"]
    assert against["violations"] and all(each["broken"] == [True, False] for each in against["violations"])
    assert against["plans"] and all(each["broke"] == 0 < each["runs"] for each in against["plans"])
    assert all(
        any(each.suffix == ".log" for each in (tmp_path / where).iterdir()) for where in ("logs", "against/logs")
    )
