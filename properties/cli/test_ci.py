"""The verdict for CI systems beside JUnit: SARIF for code scanning, annotations and a summary of the job on GitHub."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]

from properties.cli.campaigns import campaign, changed
from properties.faces.cli import main
from properties.faces.judges import Known, load_profile
from properties.faces.report import VerdictOutcome, judge_campaign, sarif_text, tell_github

ROOT = Path(__file__).parents[2]
PROFILE = load_profile("reference")
KNOWN = Known(guarantee="G1", mode="timeline", storage="s3", under="restart", sometimes=True)
TEXT = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {"text": {"type": "string"}},
}


def closed(required: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The schema of an object with these properties and no others. more: those that may be left out."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [*required],
        "properties": required | more,
    }


def many(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


WORD = {"type": "string", "minLength": 1}
# What sections 3.13 to 3.58 of SARIF 2.1.0 say of the objects that are used, and no others; what is written was also
# accepted by the schema of the standard itself.
LOG = closed(
    {
        "$schema": WORD,
        "version": {"const": "2.1.0"},
        "runs": many(
            closed(
                {
                    "tool": closed(
                        {
                            "driver": closed(
                                {
                                    "name": WORD,
                                    "version": WORD,
                                    "rules": many(closed({"id": WORD, "name": WORD, "fullDescription": TEXT})),
                                }
                            )
                        }
                    ),
                    "invocations": many(
                        closed(
                            {
                                "executionSuccessful": {"type": "boolean"},
                                "exitCode": {"type": "integer"},
                                "toolExecutionNotifications": many(
                                    closed({"level": {"enum": ["none", "note", "warning", "error"]}, "message": TEXT})
                                ),
                            }
                        )
                    ),
                    "results": many(
                        closed(
                            {
                                "ruleId": WORD,
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": TEXT,
                                "locations": many(
                                    closed(
                                        {
                                            "physicalLocation": closed(
                                                {
                                                    "artifactLocation": closed(
                                                        {"uri": WORD | {"pattern": r"^[\w./~%-]+$"}}
                                                    ),
                                                    "region": closed({"startLine": {"type": "integer", "minimum": 1}}),
                                                }
                                            )
                                        }
                                    ),
                                    1,
                                ),
                                "partialFingerprints": {"type": "object", "additionalProperties": WORD},
                                "suppressions": many(closed({"kind": {"enum": ["inSource", "external"]}})),
                            }
                        )
                    ),
                }
            ),
            1,
        ),
    }
)


def judged(tmp_path: Path, baseline: frozenset[Known] | None = None, **how: Any) -> VerdictOutcome:
    return judge_campaign(campaign(**how), PROFILE, baseline, tmp_path, ("verify",))


def log_of(outcome: VerdictOutcome, tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sarif_text(outcome, tmp_path))
    jsonschema.Draft202012Validator(LOG).validate(found)
    (run,) = found["runs"]
    assert {each["ruleId"] for each in run["results"]} == {each["id"] for each in run["tool"]["driver"]["rules"]}
    return dict(run)


def test_a_violation_is_a_result_and_what_is_undecided_is_none(tmp_path: Path) -> None:
    run = log_of(judged(tmp_path), tmp_path)
    (result,) = run["results"]
    assert result["ruleId"] == "G1" and "<b>f</b>" in result["message"]["text"] and result["suppressions"] == []
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("plan.json")
    assert run["invocations"][0] == run["invocations"][0] | {"executionSuccessful": True, "exitCode": 1}
    run = log_of(judged(tmp_path, violated=False, not_reached=("a restart",)), tmp_path)
    assert run["results"] == [] and run["invocations"][0]["exitCode"] == 3
    assert "a restart" in str(run["invocations"][0]["toolExecutionNotifications"])
    run = log_of(judged(tmp_path, violated=False, trouble="the disk is full"), tmp_path)
    assert not run["invocations"][0]["executionSuccessful"]


def test_what_the_baseline_knows_is_suppressed_and_no_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = judged(tmp_path, frozenset({KNOWN}))
    (result,) = log_of(outcome, tmp_path)["results"]
    assert result["suppressions"] == [{"kind": "external"}]
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    tell_github(outcome, tmp_path)
    err = capsys.readouterr().err
    assert "::notice title=G1" in err and "::error" not in err


class Tags(HTMLParser):
    """Which tags a page opens."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.add(tag)


def test_hostile_names_add_no_command_and_no_tag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = campaign()
    odd = changed(made.failures[0], message="50%\n::error::no, <script>\x00\udcff 'p/\ud83d'\n\n# head")
    outcome = judge_campaign(replace(made, failures=(odd,)), PROFILE, None, tmp_path, ("verify",))
    summary = tmp_path / "summary.md"
    summary.write_text("earlier\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    tell_github(outcome, tmp_path)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line]
    assert out == "" and all(line.startswith(("::error title=G1", "::warning title=marker-sim::")) for line in lines)
    assert lines[0].count("::error") == 2 and "50%25" in lines[0] and "%0Areplay: marker-sim replay " in lines[0]
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("earlier\n") and "script" not in Tags(text).found and "&lt;script&gt;" in text
    assert "\n\n" not in text, "an empty line would end the HTML, and Markdown would begin"
    log_of(outcome, tmp_path)


CLASS = """
from properties.faces.markers import DirectMarkers


class Empty(DirectMarkers):
    def list_all(self):
        return ()
"""
WORDS: tuple[str, ...] = (
    "verify",
    "--sut",
    "empty_listing:Empty",
    "--runs",
    "4",
    "--guarantees",
    "G4",
    "--mode",
    "direct",
)
WORDS += ("--storage", "s3", "--seed", "1", "--jobs", "1")


def test_verify_points_at_the_class_and_tells_github_by_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty_listing.py").write_text(CLASS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main((*WORDS, "--sarif", "new/out.sarif")) == 1
    assert "::error" not in capsys.readouterr().err
    (run,) = json.loads((tmp_path / "new" / "out.sarif").read_bytes())["runs"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "empty_listing.py"}, "region": {"startLine": 5}}
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert main((*WORDS, "--json")) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["verdict"] == "violated", "standard output has no annotation"
    assert "::error title=G4 exact-set in direct mode on s3,file=empty_listing.py,line=5::" in err
    assert "violated" in (tmp_path / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", ["--junit", "--sarif"])
def test_a_file_that_cannot_be_written_is_refused_before_the_campaign(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    for wrong in (".", "file/verdict.xml", "/proc/verdict.xml", "/sys/new/verdict.xml"):
        assert main(("verify", "--budget", "30s", option, wrong)) == 2
        err = capsys.readouterr().err
        assert f"{option} was given {wrong}" in err and err.count("\n") == 1
    assert not (tmp_path / "marker-sim-report").exists()


def test_a_device_as_a_file_stays_a_device(tmp_path: Path) -> None:
    # A pipe stands for /dev/null, which a test that fails would replace for the whole machine.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")), daemon=True)
    reader.start()
    assert main(("verify", "--runs", "2", "--jobs", "1", "--report", str(tmp_path / "r"), "--junit", str(pipe))) in (
        0,
        3,
    )
    reader.join(30)
    assert pipe.is_fifo() and read and read[0].startswith("<?xml")


def test_the_steps_of_the_workflow_for_other_projects_work(tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / "docs" / "ci-workflow.yml").read_text(encoding="utf-8"))
    (job,) = workflow["jobs"].values()
    blocks = re.findall(
        r"```python\n# (\S+)\n(.*?)```", (ROOT / "docs" / "third-party.md").read_text("utf-8"), re.DOTALL
    )
    for name, text in blocks:
        (tmp_path / name).write_text(text, encoding="utf-8")
    (settings,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "ci.md").read_text(encoding="utf-8"), re.DOTALL)
    faulty = settings.replace("markers_of_mine:Markers", "hasty_markers:Hasty").replace('budget = "60s"', "runs = 10")
    (tmp_path / "pyproject.toml").write_text(faulty, encoding="utf-8")
    summary, path = tmp_path / "summary.md", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | job["env"] | {"PATH": path, "PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(summary)}
    failed, err = False, ""
    for step in job["steps"]:
        always = str(step.get("if", "")).startswith("always()")
        if "run" not in step or step.get("name") == "Install" or (failed and not always):
            continue  # scenarios/test_extras.py installs it from a repository.
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=tmp_path, env=environment | {"GITHUB_ACTIONS": "true"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        failed, err = failed or done.returncode != 0, err + done.stderr
        assert done.returncode == (1 if step["name"] == "Judge" else 0), done.stderr
    assert failed and "::error title=G" in err and ",file=hasty_markers.py," in err
    used = [step["with"] for step in job["steps"] if "with" in step]
    kept = [line for each in used for line in str(each.get("path", each.get("sarif_file", ""))).splitlines()]
    assert len(kept) == 3 and all((tmp_path / name).stat().st_size for name in kept)
    assert "violated" in summary.read_text(encoding="utf-8")
