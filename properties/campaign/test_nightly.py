"""The workflow and the tox environment of the nightly name commands, options, extras and paths that there are."""

from __future__ import annotations

import re
import shlex
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from typer.main import get_command

from properties.faces.cli import build_app, parse_duration

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "nightly.yml"


def _check(words: list[str]) -> dict[str, Any]:
    """The options of a `marker-sim` command line, which must be accepted."""
    app: Any = get_command(build_app())
    params: dict[str, Any] = app.commands[words[1]].make_context(words[1], words[2:], obj=tuple(words)).params
    return params


def test_the_workflow_names_commands_and_extras_that_exist() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    # YAML reads the key `on` as true.
    assert workflow[True]["schedule"][0]["cron"] and "workflow_dispatch" in workflow[True]
    steps = workflow["jobs"]["chaos"]["steps"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    run = [re.sub(r"\$\{\{.*?'(\w+)'\s*\}\}", r"\1", step["run"]) for step in steps if "run" in step]
    checked = []
    for words in map(shlex.split, run):
        if words[0] == "marker-sim":
            checked.append((words[1], _check(words)))
        elif words[0] == "pip":
            asked = re.fullmatch(r"\.\[([\w,]+)\]", words[2])
            assert words[1] == "install" and asked and set(asked[1].split(",")) <= set(extras)
    assert [name for name, _ in checked] == ["doctor", "chaos"]
    params = checked[1][1]
    assert params["new_night"] and parse_duration(params["budget"], "--budget") == 5 * 3600
    limit_s = workflow["jobs"]["chaos"]["timeout-minutes"] * 60
    assert 5 * 3600 < limit_s <= 6 * 3600, "the job ends before the service ends it"


def test_the_workflow_keeps_the_directory_between_nights_and_shows_failures() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    steps = workflow["jobs"]["chaos"]["steps"]
    by_use = {step["uses"].split("@")[0]: step for step in steps if "uses" in step}
    restore, save = by_use["actions/cache/restore"], by_use["actions/cache/save"]
    assert restore["with"]["path"] == save["with"]["path"] == "chaos"
    assert restore["with"]["key"] == save["with"]["key"], "a key of its own for each run, for a cache is never replaced"
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"].strip())
    assert save["if"] == by_use["actions/upload-artifact"]["if"] == "always()", "a night with failures counts as well"
    assert "chaos/failures/" in by_use["actions/upload-artifact"]["with"]["path"]


def test_the_environment_of_tox_runs_a_night() -> None:
    tox = ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    command = tox["testenv:chaos"]["commands"]
    words = shlex.split(re.sub(r"\{env:\w+:(?:\{tox_root\}/)?(\w+)\}", r"\1", command).replace("{posargs}", ""))
    assert _check(words)["budget"] == "8h"
