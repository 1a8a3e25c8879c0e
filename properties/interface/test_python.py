"""`import marker_sim`: documented code runs, classes are taken where strings are, and a verdict shows itself."""

from __future__ import annotations

import ast
import asyncio
import json
import re
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import pytest

import marker_sim
from marker_sim.cli import main
from marker_sim.plan import Plan, write_plan
from properties.faces.markers import DirectMarkers, Factory, direct_markers
from properties.volume import CI_ONLY, PROFILE

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"


class EmptyList(DirectMarkers):
    """Says that nothing is there."""

    def list_all(self) -> tuple[str, ...]:
        return ()


def judged(system: str | Factory = "reference", runs: int = 24) -> marker_sim.Verdict:
    """A verdict of few runs in one place."""
    return marker_sim.verify(system, runs=runs, modes=["direct"], storages=["s3"])


class WrongExists(DirectMarkers):
    """Answers with a number."""

    def exists(self) -> bool:
        return 1  # type: ignore[return-value]


@pytest.fixture(scope="module")
def violated() -> marker_sim.Verdict:
    return judged(EmptyList)


def _blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def test_the_documented_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for block in _blocks(ROOT / "docs" / "third-party.md"):
        name, _, text = block.removeprefix("# ").partition("\n")
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known: dict[str, object] = {}
    blocks = _blocks(PAGE)
    assert len(blocks) >= 3
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), known)
    assert (tmp_path / "hasty-report" / "report.html").is_file()
    (short,) = _blocks(ROOT / "README.md")
    exec(compile(short, "README.md", "exec"), known)
    assert len(short.strip().splitlines()) <= 5


def test_the_public_names_are_typed_documented_and_there() -> None:
    stub = ast.parse((ROOT / "marker_sim" / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {
        (alias.name, node.module) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert {name for name, _ in typed} == set(marker_sim.__all__) and len(typed) == len(marker_sim.__all__)
    page = PAGE.read_text(encoding="utf-8")
    for name, module in typed:
        assert getattr(marker_sim, name) is getattr(sys.modules[str(module)], name)
        assert re.search(rf"\b{name}\b", page), f"docs/python.md does not name {name}"
    assert set(marker_sim.__all__) <= set(dir(marker_sim))
    with pytest.raises(AttributeError, match="has no attribute 'verfy'; it has "):
        _ = marker_sim.verfy  # type: ignore[attr-defined]


def test_the_import_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import marker_sim; print(sorted(set(sys.modules) - before))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert told.stdout == "['marker_sim']\n"


def test_a_verdict_says_what_broke_and_with_which_plan(violated: marker_sim.Verdict) -> None:
    assert violated.violated and not violated.holds and not violated.inconclusive
    first = violated.violations[0]
    assert first.guarantee in {"G4", "G11", "G14", "G15", "G16"} and first.mode == "direct" and first.storage == "s3"
    assert first.plan is not None and first.plan.entries <= 3 and len(first.steps) == first.plan.entries + 1
    assert first.plan in violated.plans and str(violated).startswith(
        "violated: properties.interface.test_python:EmptyList"
    )
    assert marker_sim.replay(first.plan, EmptyList, guarantee=first.guarantee).status == "still-violated"
    assert marker_sim.replay(first.plan, direct_markers, guarantee=first.guarantee).status == "fixed"
    (finding,) = marker_sim.judge(first.history, [first.guarantee])
    assert finding.breaches and first.message in {breach.message for breach in finding.breaches}
    assert len(first.evidence_lines) == len(set(first.evidence)) > 0
    assert all(line.startswith(f"[{n}] ") for line, n in zip(first.evidence_lines, sorted(first.evidence), strict=True))


@CI_ONLY
def test_a_class_that_no_other_process_can_import_is_judged_alike(violated: marker_sim.Verdict) -> None:
    class Local(EmptyList):
        pass

    async def cell() -> marker_sim.Verdict:
        return judged(Local)

    local = asyncio.run(cell())  # As in a notebook, whose event loop is running.
    assert [each.plan for each in local.violations] == [each.plan for each in violated.violations]
    with pytest.raises(marker_sim.UsageError, match="which other processes cannot import; write jobs=1"):
        marker_sim.verify(Local, runs=24, jobs=2)


@CI_ONLY
def test_the_text_of_a_verdict_names_no_file_and_nothing_broken_as_undecided(violated: marker_sim.Verdict) -> None:
    text = str(violated)
    assert violated.violations[0].message[:20] in text and "marker-sim" not in text and "REPORT" not in text
    # Making plans of all guarantees small takes most of the time.
    some = ["G4", "G7", "G11", "G14"] if PROFILE == "quick" else None
    both = marker_sim.verify(EmptyList, runs=24, modes=["direct"], storages=["s3", "local"], guarantees=some)
    lines = [line for line in str(both).splitlines() if line.startswith("inconclusive: G")]
    assert {*re.findall(r"\bG\d+\b", " ".join(lines))}.isdisjoint(
        {row.id for row in both.guarantees if row.verdict == "violated"}
    )


def test_the_text_is_the_same_in_a_notebook_and_for_a_forced_terminal(
    violated: marker_sim.Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = str(violated)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)  # As with IPython's kernel, where it was tried.
    assert str(violated) == plain != ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert str(violated) == plain and "\x1b" not in plain


def test_a_notebook_shows_an_error_as_one_sentence() -> None:
    # IPython calls this method of an exception instead of making a traceback.
    with pytest.raises(marker_sim.UsageError) as caught:
        marker_sim.verify(runs=0)
    assert caught.value._render_traceback_() == [f"UsageError: {caught.value}"]
    assert marker_sim.HarnessError("no room")._render_traceback_() == ["HarnessError: no room"]


def test_one_mode_or_storage_may_be_a_text() -> None:
    one = marker_sim.verify(runs=6, modes="direct", storages="s3", guarantees="G1")
    assert {(row.mode, row.storage, row.id) for row in one.guarantees} == {("direct", "s3", "G1")}


def test_a_notebook_gets_a_picture_that_is_well_formed(violated: marker_sim.Verdict) -> None:
    tree = ElementTree.fromstring(violated._repr_html_().replace("<br>", "<br/>"))
    text = "".join(tree.itertext())
    first = violated.violations[0]
    assert first.sentence in text and f"{first.guarantee} {first.slug}" in text
    assert tree.find(".//svg/rect") is not None and all(step in text for step in first.steps)
    good = judged(runs=12)
    assert not good.violated and "<svg" not in good._repr_html_() and good.reasons
    ElementTree.fromstring(good._repr_html_().replace("<br>", "<br/>"))


def test_a_verdict_is_written_as_a_report_that_the_command_line_replays(
    violated: marker_sim.Verdict, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = violated.write(tmp_path / "report").read_text(encoding="utf-8")
    (leading, *_) = json.loads((tmp_path / "report" / "verdict.json").read_bytes())["failures"]
    curve = violated.violations[0].curve
    assert curve is not None and leading["curve"] == curve.to_dict() and escape(curve.sentence) in page
    assert main(["replay", str(tmp_path / "report")]) == 1
    assert "STILL VIOLATED" in capsys.readouterr().out
    assert marker_sim.judge(tmp_path / "report" / "history.parquet")


def test_wrong_arguments_are_one_sentence_each(tmp_path: Path) -> None:
    write_plan(Plan(), tmp_path / "plan.json")
    for wrong, said in (
        (lambda: marker_sim.verify(cast(Factory, 5)), "is 5; give a class or function that takes one Context"),
        (lambda: marker_sim.verify("hudi:1.0.2"), "runs in real time"),
        (lambda: marker_sim.verify("http"), "runs in real time"),
        (lambda: marker_sim.verify(runs=0), "runs was given 0"),
        (lambda: marker_sim.verify(runs=5, budget_s=5.0), "write one of them"),
        (lambda: marker_sim.verify(modes=["dirct"]), "modes was given 'dirct'"),
        (lambda: marker_sim.verify(modes="dirct"), "modes was given 'dirct'"),
        (lambda: marker_sim.verify(storage="s3"), "verify was given storage, which it does not have; write storages"),  # type: ignore[call-arg]
        (lambda: marker_sim.verify(budget=10), "write budget_s"),  # type: ignore[call-arg]
        (lambda: marker_sim.verify(colour="red"), "write some of system, runs, seed"),  # type: ignore[call-arg]
        (lambda: marker_sim.verify(storages=[]), "storages was given"),
        (lambda: marker_sim.verify(guarantees=["G99"], runs=5), "G99"),
        (lambda: marker_sim.judge(tmp_path / "plan.json"), "is no history"),
        (lambda: marker_sim.replay(tmp_path / "none.json"), "cannot be read as a plan"),
        (lambda: marker_sim.verify(WrongExists, runs=5), "exists returned 1"),
    ):
        with pytest.raises(marker_sim.UsageError) as caught:
            wrong()
        assert said in str(caught.value) and "\n" not in str(caught.value)
    assert marker_sim.replay(tmp_path / "plan.json").status in ("fixed", "not-reproduced")
