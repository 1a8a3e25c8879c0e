"""What a foreign class returns is held against the contract: a mistake there is a usage error and never a verdict."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from marker_sim.cli import main
from marker_sim.errors import UsageError
from marker_sim.loading import load_system
from marker_sim.plan import MODES, Plan
from properties.faces.markers import Context, Created, DirectMarkers, direct_markers, served_markers
from properties.faces.targets import EVERY_CALL, try_every_call
from properties.faces.worlds import ForkServer
from properties.real.running import run_real


def _changed(method: str, change: Callable[[Any], object]) -> type:
    """A correct store of which one method returns something else."""
    own = getattr(DirectMarkers, method)
    return type(method, (DirectMarkers,), {method: lambda self, *given: change(own(self, *given))})


CreateTrue = _changed("create", lambda made: True)
CreateNone = _changed("create", lambda made: None)
CreateText = _changed("create", lambda made: made.value)
ListGenerator = _changed("list_all", iter)
ListText = _changed("list_all", "\n".join)
ListBytes = _changed("list_all", lambda names: [name.encode() for name in names])
DataNone = _changed("list_data_paths", lambda names: None)
LogGenerator = _changed("list_log_paths", iter)
ExistsNumber = _changed("exists", int)
DeleteNone = _changed("delete", lambda there: None)
AsList = _changed("list_all", list)
AsSet = _changed("list_all", set)
AsKeys = _changed("list_all", lambda names: dict.fromkeys(names).keys())
DataAsSet = _changed("list_data_paths", frozenset)
Deleted = _changed("delete", lambda there: there)


def _putting(*given: Any, **named: Any) -> type:
    """A correct store whose create puts its marker with these arguments."""
    path = "{0.directory}/{1}".format

    def create(self: Any, name: str) -> Created:
        self.context.storage.put(path(self.context, name), *given, **named)
        return Created.CREATED

    def init(self: Any, context: Context) -> None:
        self.context = context
        DirectMarkers.__init__(self, context)

    return type("Putting", (DirectMarkers,), {"__init__": init, "create": create})


PutText = _putting("")
PutWord = _putting(b"", "if-absent")
PutVersion = _putting(b"", expected=1)
WRONG = {
    "CreateTrue": "create returned True; return Created.CREATED or Created.EXISTS",
    "CreateNone": "create returned None; return Created.CREATED or Created.EXISTS",
    "CreateText": "create returned 'created'; return Created.CREATED or Created.EXISTS",
    "ListGenerator": "list_all returned <tuple_iterat",
    "ListText": "list_all returned 'f0_0-0-0_001...marker.CREATE'; return a tuple, list or set of str",
    "ListBytes": "of which b'f0_0-0-0_00...marker.CREATE' is none",
    "DataNone": "list_data_paths returned None; return a tuple, list or set of str",
    "LogGenerator": "list_log_paths returned <tuple_iterat",
    "ExistsNumber": "exists returned 1; return True or False",
    "DeleteNone": "delete returned None; return True or False",
    "PutText": "storage.put was called with ''; give bytes",
    "PutWord": "storage.put was called with 'if-absent'; give Condition.NONE or Condition.IF_ABSENT",
    "PutVersion": "storage.put was called with 1; give expected=version",
    "nothing": "the factory returned None, which has no method create, list_all, ",
}
ONLY_DIRECT = ("DataNone", "LogGenerator")  # A timeline server's are made of `list_all`.


def nothing(context: Context) -> None:
    """A factory that forgets to return what it made."""


class NoContext(DirectMarkers):
    """A store that cannot be given its context."""

    def __init__(self) -> None:
        """Take none."""


class SometimesNone(DirectMarkers):
    """A store whose deletion says nothing when there was more than one marker."""

    def delete(self) -> bool:
        """True or, by mistake, None."""
        several = len(self.list_all()) > 1
        found = super().delete()
        return None if several else found  # type: ignore[return-value]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_a_usage_error_that_names_method_value_and_what_to_return(name: str, mode: str) -> None:
    system = load_system(f"{__name__}:{name}")
    if mode == "timeline" and name in ONLY_DIRECT:
        try_every_call(system, mode, "s3")
        return
    with pytest.raises(UsageError) as error:
        try_every_call(system, mode, "s3")
    assert str(error.value).startswith(f"--sut {__name__}:{name}: ")
    assert WRONG[name] in str(error.value)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["AsList", "AsSet", "AsKeys", "DataAsSet", "Deleted"])
def test_every_collection_of_names_is_an_answer(name: str, mode: str) -> None:
    try_every_call(load_system(f"{__name__}:{name}"), mode, "local")


@pytest.mark.parametrize(("name", "mode"), [("CreateTrue", "direct"), ("ListGenerator", "timeline")])
def test_real_processes_end_with_the_same_sentence(name: str, mode: str) -> None:
    plan = Plan(mode=mode, storage="local", ops=EVERY_CALL)
    with ForkServer() as fork_server, pytest.raises(UsageError) as error:
        run_real(plan, f"{__name__}:{name}", fork_server=fork_server)
    assert WRONG[name] in str(error.value)


def test_a_wrong_answer_on_a_rare_path_ends_the_campaign_without_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report, sut = str(tmp_path / "report"), f"{__name__}:SometimesNone"
    words = ["verify", "--mode", "direct", "--storage", "local", "--runs", "60", "--seed", "1", "--report", report]
    assert main([*words, "--sut", sut]) == 2
    said = capsys.readouterr().err.splitlines()[-1]  # On a busy machine progress is printed before it.
    assert said == f"marker-sim: --sut {sut}: delete returned None; return True or False"
    assert not (tmp_path / "report" / "verdict.json").exists()


@pytest.mark.parametrize(
    ("name", "storage", "lacking"), [("hex_names", "s3", "s3-unconditional"), ("one_object", "sim", "hdfs")]
)
def test_as_many_runs_are_played_as_were_asked_for_where_a_storage_is_left_out(
    name: str, storage: str, lacking: str, tmp_path: Path
) -> None:
    sut = f"properties.correct.{name}:Markers"
    words = ["verify", "--sut", sut, "--storage", storage, "--runs", "12", "--seed", "1", "--report", str(tmp_path)]
    assert main([*words, "--guarantees", "G1"]) in (0, 3)
    verdict = json.loads((tmp_path / "verdict.json").read_text(encoding="utf-8"))
    assert verdict["runs"] == 12
    assert any(f"{lacking}: the system needs" in line for line in verdict["not_reached"])


def test_a_class_that_cannot_run_leaves_the_last_report_where_it_is(tmp_path: Path) -> None:
    report = tmp_path / "report"
    words = ["verify", "--mode", "direct", "--storage", "local", "--runs", "2", "--seed", "1", "--report", str(report)]
    assert main(words) in (0, 3)
    before = (report / "verdict.json").read_bytes()
    for name in ("CreateTrue", "DeleteNone", "nothing", "NoContext", "Missing"):
        assert main([*words, "--sut", f"{__name__}:{name}"]) == 2, name
        assert (report / "verdict.json").read_bytes() == before, name
        assert not (report / "earlier").exists(), name


def test_the_reference_is_called_without_a_check_between() -> None:
    system = load_system("reference")
    assert (system.direct, system.server) == (direct_markers, served_markers)
