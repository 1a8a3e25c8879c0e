"""docs/verdict.schema.json is the schema of every verdict.json: nothing that is written is missing in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from properties.cli.campaigns import campaign
from properties.faces.cli import main
from properties.faces.judges import Known, VerdictRow, load_profile
from properties.faces.outcome import Canary, WalkedCall
from properties.faces.report import judge_campaign
from properties.faces.targets import ServerOptions

ROOT = Path(__file__).parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs" / "verdict.schema.json").read_bytes())
KNOWN = Known(guarantee="G1", mode="timeline", storage="s3", under="restart", sometimes=True)


def closed(schema: Any) -> Any:
    """The schema with no keys but those that it names; for readers it is open, as a later version may add some."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    named = {"additionalProperties": False} if "required" in schema else {}
    return named | {key: closed(each) for key, each in schema.items()}


def check(verdict: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(closed(SCHEMA)).validate(verdict)


def test_campaigns_by_hand_with_all_that_is_optional_are_accepted(tmp_path: Path) -> None:
    whole = replace(
        campaign(trouble="the disk is full"),
        canary=Canary(mutant="no-reconcile", guarantee="G14", caught=False, plans=200),
        walked=(WalkedCall(base="timeline-create", number=1, call="put a", fates={"dies": "G1"}),),
        orders="6 of 6 orders",
        batching={"interval": "50 ms, as it says"},
        server=ServerOptions(start="./server {port}", batch_threads=3).to_dict(),
        s3={"put_if_absent": True},
    )
    for made, baseline in ((whole, None), (campaign(violated=False), None), (campaign(), frozenset({KNOWN}))):
        verdict = judge_campaign(made, load_profile("reference"), baseline, tmp_path, ("verify",)).to_dict()
        check(json.loads(json.dumps(verdict)))
    left_out = SCHEMA["properties"].keys() - json.loads(json.dumps(judge_campaign(
        whole, load_profile("reference"), None, tmp_path, ("verify",)
    ).to_dict())).keys()  # fmt: skip
    assert left_out == {"against"}, "the schema has no key that nothing writes"
    row = SCHEMA["$defs"]["row"]["properties"]
    assert set(row) == set(VerdictRow.__dataclass_fields__)


@pytest.mark.parametrize("against", [(), ("--against", "reference")])
def test_a_verdict_of_verify_is_accepted_also_after_shrink(
    against: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report"
    words = ("--sut", "mutant:ack-before-flush", "--runs", "30", "--seed", "1", "--jobs", "1", "--storage", "s3")
    code = main(("verify", *words, "--mode", "timeline", "--guarantees", "G1", "--report", str(report), *against))
    verdict = json.loads((report / "verdict.json").read_bytes())
    check(verdict)
    assert code == 1 and verdict["failures"] and ("against" in verdict) is bool(against)
    if not against:
        assert main(("shrink", str(report), "--budget", "2s")) == 1
        check(json.loads((report / "verdict.json").read_bytes()))


def test_a_wrong_verdict_is_refused() -> None:
    with pytest.raises(jsonschema.ValidationError):
        check({"schema": 1, "verdict": "holds"})
