"""What a chaos directory keeps: lines, ranges of numbers, failures; whole after a kill, and the same for ever."""

from __future__ import annotations

import random
import resource
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from marker_sim.cli import main
from marker_sim.errors import HarnessError, UsageError
from marker_sim.plan import Op, Plan
from marker_sim.system import reference
from properties.faces.campaign import (
    GOALS,
    NAME,
    NO_END,
    SHARES,
    Failures,
    NightTotals,
    Ranges,
    Space,
    Totals,
    exit_code,
    failure_lines,
    gaps,
    headline,
    name_of,
    night_rows,
    parse_stages,
    read_lines,
    read_stored,
    schedule,
    verdict_of,
    worth_shrinking,
    writing,
)
from properties.faces.outcome import FIXED, VIOLATED, FailureRecord, stories


def test_a_torn_last_line_is_as_if_its_unit_had_never_been_done(tmp_path: Path) -> None:
    with writing(tmp_path) as ledger:
        ledger.append("chaos", schema=1, sut="reference", profile="reference", seed=0)
        ledger.append("unit", text="größe\n")
    whole = (tmp_path / NAME).read_bytes()
    first = whole.index(b"\n") + 1
    for cut in range(first, len(whole)):
        (tmp_path / NAME).write_bytes(whole[:cut])
        assert len(list(read_lines(tmp_path))) == 1
        with writing(tmp_path) as ledger:
            ledger.append("unit", text="again")
        assert [line.get("text") for line in read_lines(tmp_path)] == [None, "again"]


def test_an_interrupt_between_a_line_and_its_failures_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, interrupted = Failures.write, list[str]()

    def interrupt_first(self: Failures, directory: Path, names: Iterable[str] | None = None) -> None:
        chosen = names if names is None else list(names)
        if chosen and not interrupted:
            interrupted.extend(chosen)
            raise KeyboardInterrupt
        write(self, directory, chosen)

    monkeypatch.setattr(Failures, "write", interrupt_first)
    words = ("--budget", "60s", "--stages", "swarm", "--jobs", "1", "--seed", "1", "--sut", "mutant:no-type-file")
    assert main(["chaos", *words, "--dir", str(tmp_path)]) == 130
    assert interrupted, "no failure was found"
    stored = [read_stored(path) for path in (tmp_path / "failures").glob("*.json")]
    sightings = sum(len(line.get("sightings", ())) for line in read_lines(tmp_path))
    assert sum(failure.seen + failure.alike for failure in stored) == sightings > 0


def test_a_line_for_which_there_is_no_space_is_not_there_at_all(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with writing(tmp_path) as ledger:
        ledger.append("chaos", schema=1, sut="reference", profile="reference", seed=0)
        resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / NAME).stat().st_size + 20, limits[1]))
        try:
            with pytest.raises(HarnessError, match="cannot be written"):
                ledger.append("unit", text="long" * 100)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        ledger.append("unit", text="again")
    assert [line.get("text") for line in read_lines(tmp_path)] == [None, "again"]


def test_a_damaged_line_in_the_middle_and_a_newer_ledger_are_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text('{"kind":"chaos","schema":1}\nrubbish\n{"kind":"unit"}\n')
    with pytest.raises(HarnessError, match=r"line 2 of .* is damaged"):
        list(read_lines(tmp_path))
    (tmp_path / NAME).write_text('{"kind":"chaos","schema":99}\n')
    with pytest.raises(UsageError, match="schema 99; this version reads up to 1"):
        list(read_lines(tmp_path))


def test_ranges_hand_out_every_number_once_and_holes_first() -> None:
    rng = random.Random(1)
    ranges, out = Ranges([(5, NO_END)]), list[tuple[int, int]]()
    got: list[int] = []
    for _ in range(400):
        if out and rng.random() < 0.3:
            ranges.give_back(*out.pop(rng.randrange(len(out))))
        else:
            part = ranges.take(rng.randint(1, 9), 500)
            if part:
                out.append(part)
    got = sorted(n for first, count in out for n in range(first, first + count))
    assert len(got) == len(set(got))
    while part := ranges.take(7, 500):
        got += range(part[0], part[0] + part[1])
    assert sorted(got) == list(range(5, 500)) and ranges.whole(500)
    with pytest.raises(AssertionError, match="twice"):
        ranges.add(20, 1)


def test_numbers_of_the_exhaustive_search_stand_for_its_cases_in_its_order() -> None:
    space = Space(reference())
    crashes = [(part, point) for part, points in zip(space.parts, space.points, strict=True) for point in points]
    assert [(case.part, *case.crashes) for case in space.cases(range(440, 600))] == crashes[440:600]
    first, second = (len(space.points_of(at)) for at in (0, 1))
    assert first < 440 < first + second < 600 < space.size == len(crashes), "across the end of a part"
    pairs = list(space.cases(range(space.size + 1, space.size + 3)))
    assert {(case.place[0], case.crashes[0]) for case in pairs} == {
        (space.size + number, crashes[number][1]) for number in (1, 2)
    }


def test_a_replay_moves_what_is_fixed_aside_and_it_comes_back_when_it_is_seen_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "chaos"
    record = _record()
    with writing(directory) as ledger:
        totals = Totals()
        night = {"night": 1, "clock_s": 0.0}
        totals.add(ledger.append("chaos", schema=1, sut="reference", profile="reference", seed=0))
        totals.add(ledger.append("night", **night, budget_s=1.0, stages=SHARES, missing=[], kit_version="0"))
        totals.add(_seen(ledger.append, record, 0))
        totals.add(ledger.append("end", **night))
        totals.failures.write(directory)
    name = f"{name_of(record)}.json"
    assert main(["replay", str(directory), "--keep"]) == 0 and (directory / "failures" / name).exists()
    assert main(["replay", str(directory)]) == 0
    out = capsys.readouterr().out
    assert "FIXED: G9" in out and f"moved to {directory / 'failures' / FIXED / name}" in out
    assert not (directory / "failures" / name).exists() and (directory / "failures" / FIXED / name).exists()
    with writing(directory) as ledger:
        totals = Totals().add_all(read_lines(directory))
        assert totals.failures.open == ()
        totals.add(_seen(ledger.append, record, 1))
        totals.failures.write(directory)
    assert (directory / "failures" / name).exists() and not (directory / "failures" / FIXED / name).exists()
    assert read_stored(directory / "failures" / name).seen == 2
    copied = tmp_path / "downloaded"
    shutil.copytree(directory / "failures", copied)
    assert main(["replay", str(copied)]) == 0 and (copied / FIXED / name).exists()


def _record(**changes: Any) -> FailureRecord:
    given: dict[str, Any] = {
        "guarantee": "G9",
        "mode": "timeline",
        "storage": "s3",
        "world": "simulated",
        "seed": 3,
        "message": "it broke",
        "text": "it broke",
        "evidence": (1,),
        "plan": Plan(seed=3).to_dict(),
        "shrunk": True,
    }
    return FailureRecord(**given | changes)


def _seen(append: Any, record: FailureRecord, number: int) -> dict[str, Any]:
    place = {"stream": "swarm", "first": number, "count": 1, "seconds": 0.1, "clock_s": 0.5}
    line: dict[str, Any] = append("unit", night=1, **place, sightings=[asdict(record)])
    return line


def test_what_each_run_breaks_with_another_is_of_its_story_told_by_the_smallest_plan(tmp_path: Path) -> None:
    where = {"sut": "s", "profile": "p", "kit_version": "0", "night": 1, "at": "now"}
    failures = Failures()
    large = Plan(ops=tuple(Op(actor="driver", kind="delete") for _ in range(3))).to_dict()
    for guarantee, also, cause, plan in (
        ("G3", ("G11 glued",), "glued", large),
        ("G4", ("G11 glued", "G6 unanswered"), "cut", large),
        ("G6", (), "unanswered", large),
        ("G11", (), "glued", Plan(num_threads=3, ops=(Op(actor="driver", kind="delete"),)).to_dict()),
    ):
        failures.see(_record(guarantee=guarantee, also=also, cause=cause, plan=plan), **where)
    groups = [[each.guarantee for each in group] for group in stories(failures.open)]
    assert sorted(groups) == [["G11", "G3"], ["G6", "G4"]], "the plan of G4 breaks both, and does not join them"
    (one, other) = failure_lines(Totals(failures=failures), tmp_path)
    assert one.startswith("G11 in timeline mode") and "; also breaks G3 (1 more stored failure): marker-sim" in one
    assert other.startswith("G6") and "; also breaks G4 (1 more stored failure): marker-sim" in other


def test_a_night_counts_stories_in_its_row_and_its_sentence_as_verify_does(tmp_path: Path) -> None:
    """One defect in three places and another one; a night later the second one is fixed and the first one is not."""
    lost = [
        _record(guarantee="G1", cause="lost", storage=storage, plan=Plan(storage=storage).to_dict())
        for storage in ("s3", "local", "s3-unconditional")
    ]
    many = _record(guarantee="G8", cause="many", storage="hdfs", plan=Plan(storage="hdfs").to_dict())
    begun = {"budget_s": 9.0, "stages": {"swarm": 100.0}, "missing": [], "kit_version": "0", "clock_s": 0}
    with writing(tmp_path) as ledger:
        ledger.append("chaos", schema=1, sut="mine", profile="reference", seed=0)
        ledger.append("night", night=1, **begun)
        for number, record in enumerate((*lost, many)):
            _seen(ledger.append, record, number)
        ledger.append("night", night=2, **begun)
        for record, status in ((lost[0], VIOLATED), (lost[1], FIXED), (many, FIXED)):
            ledger.append("replayed", night=2, name=name_of(record), status=status, clock_s=1.0)
    lines = list(read_lines(tmp_path))
    first, totals = Totals().add_all(line for line in lines if line.get("night") != 2), Totals().add_all(lines)
    assert headline(first) == "night 1: mine breaks G1, G8; open: 2 stories, most likely 2 defects"
    assert headline(totals) == "night 2: mine breaks what it broke before; open: 1 story, most likely 1 defect"
    cells = [[row[name] for name in ("new", "still", "fixed")] for row in night_rows(totals)]
    assert cells == [["2", "0", "0"], ["0", "1", "1"]], "four failures, of which three are one story"


def test_a_seed_makes_no_other_failure_and_alike_ones_are_counted_with_the_first() -> None:
    where = {"sut": "s", "profile": "p", "kit_version": "0", "night": 1, "at": "now"}
    failures = Failures()
    first = failures.see(_record(), **where)
    assert failures.see(_record(seed=4, plan=Plan(seed=4).to_dict()), **where).name == first.name
    assert failures.by_name[first.name].seen == 2 and failures.by_name[first.name].seeds == (3, 4)
    for threads in range(3, 8):
        failures.see(_record(plan=Plan(num_threads=threads).to_dict()), **where)
    assert len(failures.by_name) == 3 and failures.by_name[first.name].alike == 3
    failures.see(_record(plan=Plan(num_threads=9).to_dict(), shrunk=False), **where)
    assert len(failures.by_name) == 3, "one that nobody made small is no news"
    failures.see(_record(guarantee="G1"), **where)
    assert len(failures.by_name) == 4


def test_shares_add_up_and_what_is_missing_leaves_its_share_to_the_others() -> None:
    assert parse_stages("real:1,swarm:3") == {"swarm": 3.0, "real": 1.0}
    stages, left_out = schedule(SHARES, 1000.0, {"spark": "no Java", "real-s3": "no boto3"})
    assert [stage.name for stage in stages] == ["swarm", "exhaustive", "real"]
    assert stages[-1].end_s == pytest.approx(1000.0) and stages[2].streams == ("real-local",)
    assert left_out == ("real-s3: no boto3", "spark: no Java")
    short, left_out = schedule({"spark": 1.0, "swarm": 9.0}, 100.0, {})
    assert [stage.name for stage in short] == ["swarm"] and "too short" in left_out[0]


def test_a_kind_that_comes_all_the_time_is_made_small_ever_more_rarely() -> None:
    assert [seen for seen in range(70) if worth_shrinking(seen)] == [0, 1, 3, 7, 15, 31, 63]


def _night(**changes: Any) -> NightTotals:
    given: dict[str, Any] = {"number": 1, "judged": Counter(G1=5), "canary": {"mutant": "m", "caught": "G1"}}
    return NightTotals(**given | changes)


def test_a_night_that_was_blind_or_saw_too_little_never_holds() -> None:
    assert (verdict_of(_night()), exit_code(_night())) == ("holds", 0)
    doubtful = [
        _night(judged=Counter()),
        _night(canary=None),
        _night(canary={"mutant": "m", "caught": ""}),
        _night(differences=1),
        _night(swarm_units=4, quiet=["a create a run"] * 4),
        _night(looked=Counter({"timeline/s3/operations": 10**6})),
    ]
    assert {(verdict_of(night), exit_code(night)) for night in doubtful} == {("inconclusive", 3)}
    assert [line for line in gaps(doubtful[-1]) if line.startswith("coverage goal missed: batch-cut")]
    assert exit_code(_night(trouble=["swarm 1: the worker ended"])) == 4
    assert exit_code(_night(kinds=Counter({"G1/direct/s3": 1}), trouble=["t"])) == 1
    assert exit_code(_night(replayed={"G1-0": VIOLATED})) == 1, "a failure of another night is one still"


def test_what_happened_is_reached_and_what_cannot_be_seen_is_not_asked_for() -> None:
    looked = Counter({"timeline/s3/operations": 10**6, "direct/local/writes": 10**6})
    everything = Counter({goal.name: 1 for goal in GOALS})
    assert _night(looked=looked, reached=everything).not_reached == []
    ours = _night(looked=looked).not_reached
    theirs = _night(looked=looked, not_goals={"batch-of-several"}).not_reached
    assert [line.partition(":")[0] for line in ours if line not in theirs] == ["batch-of-several"] and theirs
    assert _night(looked=Counter({"timeline/s3/operations": 3})).not_reached == [], "too small a night"


def test_failures_of_rounds_without_a_plan_are_told_apart_by_their_cause_and_cannot_be_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = {"sut": "hudi-spark:1.2.0", "profile": "hudi-spark", "kit_version": "0", "night": 1, "at": "now"}
    rounds = {"world": "rounds", "plan": {}, "shrunk": False}
    failures = Failures()
    one = failures.see(_record(**rounds, cause="stored", seed=1), **where)
    assert failures.see(_record(**rounds, cause="stored", seed=2), **where).name == one.name
    assert failures.see(_record(**rounds, cause="other", seed=2), **where).name != one.name
    failures.write(tmp_path)
    assert main(["replay", str(tmp_path / "failures" / f"{one.name}.json")]) == 4
    said = capsys.readouterr().out
    assert said.startswith("CANNOT RUN") and "look again: marker-sim verify --sut hudi-spark:1.2.0" in said


def test_nights_beside_each_other_say_which_version_of_a_server_they_had(tmp_path: Path) -> None:
    words = {"budget_s": 9.0, "stages": {"foreign": 100.0}, "missing": [], "kit_version": "0"}
    with writing(tmp_path) as ledger:
        ledger.append("chaos", schema=1, sut="hudi:1.1.1", profile="hudi", seed=0, server={}, storages=["s3"])
        for number, version in enumerate(("1.1.1", "1.2.0"), start=1):
            sut = f"hudi:{version}"
            ledger.append(
                "night", night=number, clock_s=0, sut=sut, sut_version=version, server={"start": "x"}, **words
            )
            unit = {"stream": "foreign-s3", "first": number, "count": 1, "seconds": 1.0, "runs": 1}
            ledger.append("unit", night=number, **unit, judged={"G1": 1}, goals=["in plans: kill"], reached={})
            ledger.append("end", night=number, clock_s=9.0)
    totals = Totals().add_all(read_lines(tmp_path))
    rows = night_rows(totals)
    assert [row["system"] for row in rows] == ["hudi:1.1.1", "hudi:1.2.0"]
    assert [row["foreign-s3"] for row in rows] == ["1 in 1 s"] * 2 and "swarm" not in rows[0]
    assert totals.sut == "hudi:1.2.0" and totals.server.start == "x" and totals.storages == ("s3",)
    assert "coverage goal missed: in plans: kill" in gaps(totals.night), "what decides must have happened in the night"
