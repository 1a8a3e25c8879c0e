"""What is said of Pythons, stages, environments and locked versions in several files is the same in all of them."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml  # type: ignore[import-untyped]
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from properties.faces.surroundings import REQUIREMENTS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "uv.lock").read_text(encoding="utf-8")


def _tox() -> ConfigParser:
    tox = ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    return tox


def _workflow() -> dict[str, Any]:
    path = ROOT / ".github" / "workflows" / "pull-requests.yml"
    workflow: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return workflow


def test_the_pythons_of_the_classifiers_are_those_of_tox_and_of_the_workflow() -> None:
    begin = "Programming Language :: Python :: 3."
    named = {int(each.removeprefix(begin)) for each in PROJECT["classifiers"] if each.startswith(begin)}
    environments = {int(each) for each in re.findall(r"\bpy3(\d+)\b", _tox()["tox"]["env_list"])}
    matrix = _workflow()["jobs"]["stages"]["strategy"]["matrix"]
    jobs = {*matrix["python"], *(each["python"] for each in matrix["include"])}
    assert named == environments == {int(each.partition(".")[2]) for each in jobs}
    assert PROJECT["requires-python"] == f">=3.{min(named)}"


def test_the_workflow_runs_every_stage_of_ci_and_only_stages_that_there_are() -> None:
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    stages = re.search(r"MARKER_SIM_CI_STAGES:-([a-z ]+)\}", text)
    assert stages
    matrix = _workflow()["jobs"]["stages"]["strategy"]["matrix"]
    asked = {stage for each in matrix["stages"] for stage in each.split()}
    assert asked == {*stages[1].split()} == {*re.findall(r"wanted (\w+)", text)}
    assert all({*each["stages"].split()} <= asked for each in matrix["include"])


def test_the_jobs_of_the_workflow_name_commands_that_there_are() -> None:
    jobs = _workflow()["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert "bash .ci/run" in commands
    named = {each for command in commands for each in re.findall(r"tox -e (\w+)", command)}
    assert named and all(f"testenv:{each}" in _tox() for each in named)


def test_extras_that_tox_installs_exist() -> None:
    tox = _tox()
    asked = {tox[section]["extras"] for section in tox.sections() if "extras" in tox[section]}
    assert asked and asked <= PROJECT["optional-dependencies"].keys()


def test_the_lock_file_is_about_the_dependencies_of_today() -> None:
    """Newer releases make no lock file stale; other bounds in pyproject.toml do."""
    package = next(each for each in tomllib.loads(LOCK)["package"] if each["name"] == PROJECT["name"])
    said = [each for extra in PROJECT["optional-dependencies"].values() for each in extra] + PROJECT["dependencies"]
    wanted = {(each.name, each.specifier) for each in map(Requirement, said) if each.name != PROJECT["name"]}
    locked = {(each["name"], SpecifierSet(each.get("specifier", ""))) for each in package["metadata"]["requires-dist"]}
    assert locked == wanted, "write it again with `uv lock`"
    assert {*package["metadata"]["provides-extras"]} == PROJECT["optional-dependencies"].keys()


def test_the_lock_file_names_the_public_registry_and_no_mirror_of_it() -> None:
    hosts = {urlsplit(url).hostname for url in re.findall(r'https?://[^"\s]+', LOCK)}
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_what_is_to_be_installed_stands_in_one_table_which_agrees_with_the_extras() -> None:
    for path in (ROOT / "marker_sim").rglob("*.py"):
        assert "pip install" not in path.read_text(encoding="utf-8") or path.name == "requirements.py", path
    brought = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    for each in REQUIREMENTS.values():
        names = {re.split(r"[^A-Za-z0-9_-]", line)[0] for line in brought[each.extra]}
        assert each.package in names, f"{each.package} is not in the extra {each.extra!r} of pyproject.toml"
