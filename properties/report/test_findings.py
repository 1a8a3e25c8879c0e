"""docs/findings.md says what is stored of each finding: nothing of it is written twice, and nothing is out of date."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from marker_sim.errors import UsageError
from properties.faces.judges import load_baseline, load_profile, shipped_baselines
from properties.volume import CI_ONLY
from scenarios.findings.document import differences, documents, texts
from scenarios.findings.stored_finding import ScriptRun, StoredFinding, read_findings, write_finding
from scenarios.plain_shell import same_in_every_run


def shown() -> StoredFinding:
    """A finding of a timeline server whose script was run."""
    return next(each for each in read_findings() if each.ran and each.sut.startswith("hudi:"))


def test_the_documents_are_what_the_stored_findings_give() -> None:
    assert not tuple(differences(read_findings())), "python -m scenarios.findings writes them"


def test_every_finding_is_told_and_says_where_its_plan_is_from() -> None:
    told = {anchor for text in texts().values() for anchor in map(_slug, re.findall(r"^##? (.*)$", text, re.MULTILINE))}
    assert told > {each.name for each in read_findings()}
    for each in read_findings():
        assert each.missed or each.command or "by hand" in each.by_hand, each.name
        assert each.missed or each.no_script or each.ran, f"{each.name}: its script was never run"
    for name, text in texts().items():
        if name.startswith("findings/") and "<!-- script: " not in text:
            assert "scenarios/by_hand/" in text, f"{name} says neither by which plan nor by which script it is shown"


def _slug(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_prose_is_kept_and_what_stands_between_the_comments_is_not(tmp_path: Path) -> None:
    stored = (shown(),)
    part = f"<!-- script: {stored[0].name} -->\nold\n<!-- end of script -->"
    before = f"# Mine\n\n<!-- script: table -->\nold\n<!-- end of script -->\n\nmine\n\n{part}\nmine too\n"
    after = documents(stored, {"findings.md": before})["findings.md"]
    assert (
        "\nold\n" not in after
        and "\nmine\n" in after
        and after.endswith("\nmine too\n")
        and after.startswith("# Mine\n")
    )
    assert stored[0].transcript[0] in after and documents(stored, {"findings.md": after})["findings.md"] == after
    with pytest.raises(UsageError, match="write both or none"):
        documents((), {"findings.md": before})


@CI_ONLY
def test_a_plan_that_is_another_one_by_now_is_noticed(tmp_path: Path) -> None:
    finding = shown()
    assert finding.plan is not None
    changed = replace(finding, plan={**finding.plan, "ops": [*finding.plan["ops"], *finding.plan["ops"]]})
    said = tuple(differences((*(each for each in read_findings() if each.name != finding.name), changed)))
    assert any(re.match("docs/findings.* does not say what is stored", line) for line in said)
    assert any(f"the script of {finding.name} is not the one that was run" in line for line in said)


def test_each_shipped_baseline_can_be_named_and_tells_where_its_entries_are_reproduced() -> None:
    titles = {
        f"docs/{name}{f'#{_slug(title)}' if name == 'findings.md' else ''}"
        for name, text in texts().items()
        for title in re.findall(r"^##? (.*)$", text, re.MULTILINE)
    }
    for name in shipped_baselines():
        baseline = load_baseline(name)
        assert baseline
        for known in baseline:
            assert known.story in titles, (name, known)
            assert known.storage == name.rsplit("-", 1)[1]
            assert load_profile("hudi").promise(known.guarantee, known.mode, known.storage, known.under).promised
    with pytest.raises(UsageError, match=r"give the path of a JSON file or one of .*hudi-1\.0\.2-s3"):
        load_baseline("hudi-0.1.0-s3")


def test_a_finding_is_stored_without_what_is_empty_and_read_again(tmp_path: Path) -> None:
    for each in read_findings():
        write_finding(each, tmp_path)
    assert read_findings(tmp_path) == read_findings()
    (tmp_path / f"{shown().name}.json").write_text('{"name": "another"}', encoding="utf-8")
    with pytest.raises(UsageError, match="is no stored finding"):
        read_findings(tmp_path)


def test_a_later_run_in_the_same_place_takes_the_place_of_an_earlier_one() -> None:
    finding = replace(shown(), ran=(), transcript=())

    def run(storage: str, code: int) -> ScriptRun:
        return ScriptRun(sut="hudi:1.0.2", storage=storage, code=code, last="", steps="")

    for storage, code in (("local", 0), ("s3", 1), ("local", 1)):
        finding = finding.with_run(run(storage, code), (f"{storage} {code}",))
    assert finding.ran == (run("local", 1), run("s3", 1)) and finding.transcript == ("local 1",)


def test_lines_have_nothing_of_one_run_alone() -> None:
    line = "Failed to write file:/tmp/tmp.Xy12ab/tmp.h3Zk/1/storage/t at 127.0.0.1:29013"
    assert same_in_every_run(line) == "Failed to write file:DIR/storage/t at 127.0.0.1:PORT"
