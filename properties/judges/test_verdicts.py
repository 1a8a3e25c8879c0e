"""From findings to verdicts: the table, profiles, baselines, tallies, violations, and what the view refuses."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from marker_sim.errors import UsageError, Violation
from marker_sim.faults import FAULT_CLASSES
from marker_sim.history import History
from marker_sim.judges import Breach, Finding, judge
from marker_sim.judges.baselines.baseline import (
    Differences,
    Known,
    compare,
    load_baseline,
    parse_baseline,
)
from marker_sim.judges.guarantees import ALL, GUARANTEES, parse_guarantees
from marker_sim.judges.promises.profiles import SHIPPED, load_profile, parse_profile
from marker_sim.judges.verdict_row import VerdictRow
from marker_sim.judges.violations import VIOLATIONS
from marker_sim.outcome.statistics import Statistics, overall
from properties.breaking import raise_first
from properties.judges.build import DIRECTORY, Story, marker

A = marker("a")
REFERENCE = load_profile("reference")


def good() -> History:
    story = Story()
    story.start()
    story.create(A)
    return story.history()


def lost() -> History:
    """A marker lost after a restart."""
    story = Story()
    story.start()
    story.create(A)
    story.kill()
    story.put(f"{DIRECTORY}/MARKERS0", None)
    return story.history()


def statistics(*histories: History, guarantees: frozenset[str] | None = None) -> Statistics:
    made = Statistics()
    for history in histories:
        made.add(history, judge(history, guarantees))
    return made


def row(made: Statistics, guarantee: str, profile: str = "reference") -> VerdictRow:
    (found,) = [row for row in made.rows(load_profile(profile)) if row.id == guarantee]
    return found


def test_every_guarantee_has_a_judge_an_exception_and_a_place_in_the_table() -> None:
    assert [guarantee.id for guarantee in GUARANTEES] == list(VIOLATIONS) == [f"G{n}" for n in range(1, 33)]
    judged = [guarantee.id for guarantee in GUARANTEES if guarantee.judge is not None]
    assert judged == [f"G{n}" for n in range(1, 26) if n != 21], "black_box"
    assert all(VIOLATIONS[name].guarantee == name for name in VIOLATIONS)
    assert [finding.guarantee for finding in judge(good())] == judged


def test_guarantees_are_named_by_id_or_slug() -> None:
    assert parse_guarantees("g1, exact-set") == {"G1", "G4"}
    for wrong in ("", "G99", "exact-sett"):
        with pytest.raises(UsageError, match="G1 \\(flushed-before-ack\\)"):
            parse_guarantees(wrong)


def test_a_violation_shows_the_sentence_the_message_and_the_events() -> None:
    history = lost()
    with pytest.raises(VIOLATIONS["G3"]) as caught:
        raise_first(history, judge(history, frozenset({"G1", "G3"})))
    text = str(caught.value)
    assert "G3 acked-marker-survives: An answered marker stays" in text
    assert "under: restart" in text and f"[{caught.value.breach.evidence[-1]}]" in text
    assert isinstance(caught.value, Violation)
    assert str(pickle.loads(pickle.dumps(caught.value))) == text
    raise_first(good(), judge(good()))


def test_a_breach_under_each_class_is_counted_by_class() -> None:
    made = row(statistics(lost(), lost(), good()), "G3")
    assert (made.verdict, made.judged, made.violations) == ("violated", 3, 2)
    assert made.under == {**dict.fromkeys(FAULT_CLASSES, 0), "restart": 2}
    assert made.message and made.evidence and made.slug == "acked-marker-survives"


def test_nothing_judged_is_inconclusive_and_never_holds() -> None:
    made = statistics(Story().history())
    assert row(made, "G1").verdict == "inconclusive"
    assert overall(made.rows(REFERENCE)) == "inconclusive"
    assert overall(()) == "inconclusive"


def test_an_undecided_run_adds_nothing_but_its_breaches() -> None:
    made = Statistics()
    finding = Finding(guarantee="G6", applicable=True, judged=5, undecided="the server was left dead")
    made.add(good(), (finding,))
    assert (row(made, "G6").verdict, row(made, "G6").message) == ("inconclusive", "the server was left dead")
    made.add(good(), (replace(finding, undecided="", judged=2),))
    assert (row(made, "G6").verdict, row(made, "G6").judged) == ("holds", 2)
    breach = Breach(message="exited", evidence=(1,), under="none")
    made.add(good(), (replace(finding, breaches=(breach,)),))
    assert row(made, "G6").verdict == "violated"


def test_verdicts_merge_by_severity() -> None:
    names = frozenset({"G1", "G3"})
    assert overall(statistics(good(), guarantees=names).rows(REFERENCE)) == "holds"
    assert (
        overall(statistics(good(), Story(mode="direct").history(), guarantees=names).rows(REFERENCE)) == "inconclusive"
    )
    assert overall(statistics(lost(), Story(mode="direct").history(), guarantees=names).rows(REFERENCE)) == "violated"


def test_merging_tallies_gives_what_one_tally_gives_also_over_a_pickle() -> None:
    one = statistics(good(), lost())
    two = statistics(good())
    two.merge(pickle.loads(pickle.dumps(statistics(lost()))))
    assert one.rows(REFERENCE) == two.rows(REFERENCE)
    for name in ("runs", "operations", "faults", "reached"):
        assert getattr(one, name) == getattr(two, name)
    assert one.operations == {"create": {"ok": 2, "fail": 0, "info": 0}} and one.faults == {"kill": 1}


def test_ends_of_faults_and_of_the_run_are_not_faults_that_fired() -> None:
    story = Story()
    story.start()
    story.fault("pause", value="begin")
    story.fault("pause", value="end")
    story.fault("kill", value="end-of-run")
    assert statistics(story.history()).faults == {"pause": 1}


def test_the_share_of_answers_that_were_read_in_time_is_stated() -> None:
    story = Story(witness="reads", storage="local")
    story.start()
    story.end(story.ask(A), "ok", "created")
    story.look(A)
    story.end(story.ask(marker("b")), "ok", "created")
    story.kill()
    story.look(A, marker("b"))
    assert row(statistics(story.history()), "G1").read_at_ack_share == 0.5
    assert row(statistics(good()), "G1").read_at_ack_share == 1.0
    assert row(statistics(good()), "G3").read_at_ack_share is None


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles_name_a_source_for_every_word_they_say(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    for guarantee in ALL:
        for under in FAULT_CLASSES:
            assert profile.promise(guarantee, "timeline", "s3", under).source


def test_profiles_tell_apart_what_is_promised_and_what_applies() -> None:
    for name in ("http", "hudi"):
        profile = load_profile(name)
        assert not profile.promise("G23", "timeline", "local", "none").promised
        assert profile.promise("G23", "timeline", "local", "none").applicable
        assert not profile.promise("G22", "timeline", "hdfs", "none").applicable
        assert profile.promise("G3", "timeline", "local", "restart").promised
    assert not load_profile("hudi").promise("G3", "timeline", "local", "second-server").promised
    assert REFERENCE.promise("G23", "timeline", "local", "second-server").promised


def test_what_is_not_promised_is_counted_and_not_held_against_anybody() -> None:
    made = statistics(lost(), good())
    assert row(made, "G23", "http").verdict == "not-promised" and row(made, "G23", "http").violations == 1
    assert row(made, "G22", "http").verdict == "not-applicable"
    story = Story()
    story.start()
    story.create(A)
    story.start("second#1")
    story.put(f"{DIRECTORY}/MARKERS0", None)
    partly = row(statistics(story.history()), "G3", "hudi")
    assert (partly.verdict, partly.violations) == ("holds", 1)
    assert "not promised under second-server" in partly.message


def test_a_profile_of_ones_own_is_read_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "promise": [{"guarantee": "G1", "storage": "s3", "source": "readme"}]}))
    profile = load_profile(str(path))
    assert profile.promise("G1", "direct", "s3", "wire").promised
    assert not profile.promise("G1", "direct", "local", "wire").promised
    for wrong in (
        {},
        {"promise": [{"source": "x"}]},
        {"promise": [{"guarantee": "G1", "under": "rain"}]},
        {"promise": [{"guarantee": "G1", "mode": "sideways"}]},
        {"promise": [{"guarantee": "G1", "promised": "yes"}]},
        {"promise": [{"guarantee": "G1", "colour": "red"}]},
        {"promise": [{"guarantee": "G1"}], "extends": "mine"},
    ):
        with pytest.raises(UsageError):
            parse_profile(wrong, "mine")
    with pytest.raises(UsageError, match="reference, python, http, http-one-server"):
        load_profile(str(tmp_path / "none.toml"))


def test_only_differences_from_a_baseline_count_and_a_stale_entry_does(tmp_path: Path) -> None:
    rows = statistics(lost(), guarantees=frozenset({"G3", "G1"})).rows(REFERENCE)
    path = tmp_path / "known.json"
    violated = compare(rows, frozenset(), REFERENCE).unexpected
    path.write_text(json.dumps({"schema": 1, "known": [asdict(known) for known in violated]}))
    baseline = load_baseline(path)
    assert {replace(known, cause="") for known in baseline} == {
        Known(guarantee="G3", mode="timeline", storage="s3", under="restart")
    }
    assert overall(rows, compare(rows, baseline, REFERENCE)) == "holds"
    unexpected = compare(rows, frozenset(), REFERENCE)
    assert unexpected.unexpected and overall(rows, unexpected) == "violated"
    healthy = statistics(good(), guarantees=frozenset({"G3", "G1"})).rows(REFERENCE)
    stale = compare(healthy, baseline, REFERENCE)
    assert stale.stale == tuple(baseline) and overall(healthy, stale) == "violated"
    elsewhere = frozenset({Known(guarantee="G3", mode="timeline", storage="local", under="restart")})
    assert not compare(healthy, elsewhere, REFERENCE).stale, "local was not judged in these runs"


def test_an_entry_that_shows_sometimes_is_never_stale(tmp_path: Path) -> None:
    where = {"guarantee": "G3", "mode": "timeline", "storage": "s3", "under": "restart"}
    path = tmp_path / "known.json"
    path.write_text(json.dumps({"schema": 1, "known": [{**where, "sometimes": True, "story": "docs/findings.md"}]}))
    baseline = load_baseline(path)
    broken = statistics(lost(), guarantees=frozenset({"G3"})).rows(REFERENCE)
    healthy = statistics(good(), guarantees=frozenset({"G3"})).rows(REFERENCE)
    assert compare(broken, baseline, REFERENCE) == Differences()
    differences = compare(healthy, baseline, REFERENCE)
    assert differences == Differences(unmet=tuple(baseline)) and overall(healthy, differences) == "holds"
    other = frozenset({Known(guarantee="G3", mode="timeline", storage="s3", under="wire", sometimes=True)})
    unexpected = compare(broken, other, REFERENCE).unexpected
    assert [replace(known, cause="") for known in unexpected] == [*baseline], "it excuses its own place alone"


def test_an_entry_is_stale_only_where_a_fault_of_its_class_struck() -> None:
    baseline = frozenset({Known(guarantee="G3", mode="timeline", storage="s3", under="restart")})
    healthy = statistics(good(), guarantees=frozenset({"G3"})).rows(REFERENCE)
    for struck, stale in (((), ()), (("server-error",), ()), (("kill",), tuple(baseline)), (None, tuple(baseline))):
        differences = compare(healthy, baseline, REFERENCE, struck)
        assert differences.stale == stale and {*differences.stale, *differences.unmet} == baseline
    always = frozenset({Known(guarantee="G3", mode="timeline", storage="s3", under="none")})
    assert compare(healthy, always, REFERENCE, ()).stale == tuple(always), "no fault is needed for it"


def caused(*causes: str) -> tuple[VerdictRow, ...]:
    """The rows of a run that broke G3 after a restart, once by each cause."""
    made = Statistics()
    breaches = tuple(Breach(message="lost", evidence=(1,), under="restart", cause=cause) for cause in causes)
    made.add(lost(), (Finding(guarantee="G3", applicable=True, judged=1, breaches=breaches),))
    return made.rows(REFERENCE)


def test_one_place_of_a_baseline_holds_a_defect_for_each_cause_and_the_mended_one_goes_stale() -> None:
    place = Known(guarantee="G3", mode="timeline", storage="s3", under="restart")
    glued, cut = replace(place, cause="glued"), replace(place, cause="file-cut")
    both = caused("glued", "file-cut", "glued")
    assert both[0].causes == {"file-cut": 1, "glued": 2} and both[0].breakdown == {"restart": both[0].causes}
    assert compare(both, frozenset({glued, cut}), REFERENCE) == Differences()
    mended = compare(caused("file-cut"), frozenset({glued, cut}), REFERENCE)
    assert mended == Differences(stale=(glued,)), "the other one is still expected"
    assert compare(both, frozenset({glued}), REFERENCE) == Differences(unexpected=(cut,)), "one does not excuse another"
    assert compare(both, frozenset({place}), REFERENCE) == Differences(), "an entry of before there were causes"
    assert compare(caused(), frozenset({place}), REFERENCE, ("kill",)) == Differences(stale=(place,))


def local_server(glues: bool, cuts: bool) -> History:
    """A server on local files that is killed and started again; what it does wrong is up to the caller."""
    story = Story(witness="reads", storage="local")
    story.start()
    b, c, d = marker("b"), marker("c"), marker("d")
    for name in (A, b, c):
        story.create(name)
    story.look(A, b, c)
    story.kill()
    story.look(*((A,) if cuts else (A, b, c)))
    story.start()
    story.create(d)
    story.look(*(() if cuts else (b, c)), *((f"{A}{d}",) if glues else (A, d)))
    return story.history()


def test_a_version_that_mends_one_of_two_defects_under_one_guarantee_makes_that_entry_stale() -> None:
    shipped, only = load_baseline("hudi-1.0.2-local"), frozenset({"G3"})
    known = frozenset(replace(k, sometimes=k.sometimes and k.cause != "file-cut") for k in shipped)
    (glued,) = [k for k in known if (k.guarantee, k.under, k.cause) == ("G3", "restart", "glued")]
    (cut,) = [k for k in known if (k.guarantee, k.under, k.cause) == ("G3", "restart", "file-cut")]

    def stale(glues: bool, cuts: bool) -> set[Known]:
        made = statistics(local_server(glues, cuts), guarantees=only)
        differences = compare(made.rows(load_profile("hudi")), known, load_profile("hudi"), made.faults)
        assert not differences.unexpected
        return {*differences.stale}

    assert stale(glues=True, cuts=True) == set()
    assert stale(glues=False, cuts=True) == {glued}
    assert stale(glues=True, cuts=False) == {cut}
    assert stale(glues=False, cuts=False) == {glued, cut}


@pytest.mark.parametrize(
    "raw",
    [
        [],
        {"known": [{"mode": "timeline", "storage": "s3", "under": "none"}]},
        {"known": [{"guarantee": "G3,G4", "mode": "timeline", "storage": "s3", "under": "none"}]},
        {"known": [{"guarantee": "G3", "mode": "sideways", "storage": "s3", "under": "none"}]},
        {"known": [{"guarantee": "G3", "mode": "timeline", "storage": "s3", "under": "none", "sometimes": 1}]},
        {"known": [{"guarantee": "G3", "mode": "timeline", "storage": "s3", "under": "none", "often": True}]},
        {"known": [{"guarantee": "G3", "mode": "timeline", "storage": "s3", "under": "none", "cause": None}]},
        {"known": [{"guarantee": "G3", "mode": "timeline", "storage": "s3", "under": "none", "cause": "glued"}] * 2},
        {"schema": 2, "known": []},
    ],
)
def test_a_baseline_that_is_none_is_refused(raw: object) -> None:
    with pytest.raises(UsageError):
        parse_baseline(raw, "known.json")


def test_the_kit_contradicting_itself_is_a_defect_of_the_kit() -> None:
    story = Story()
    story.create(A)
    story.observe("file", path=f"{DIRECTORY}/MARKERS0", value=b"something else\n")
    story.observe("snapshot", path=DIRECTORY, caused_by=story.last)
    with pytest.raises(AssertionError, match="MARKERS0"):
        judge(story.history())


def test_a_history_whose_indices_are_not_positions_is_refused() -> None:
    story = Story()
    story.create(A)
    with pytest.raises(UsageError, match="position"):
        judge(History(story.header, tuple(story.events[1:])))


def test_active_faults_come_before_earlier_ones_and_two_servers_before_all() -> None:
    def under(*faults: str) -> str:
        story = Story()
        story.start()
        for fault in faults:
            if fault == "second-server":
                story.start("second#1")
            else:
                story.fault(fault, path=f"{DIRECTORY}/MARKERS0")
        story.end(story.ask(A), "ok", "created")
        (finding,) = judge(story.history(), frozenset({"G1"}))
        return finding.breaches[0].under

    assert under() == "none"
    assert under("throttled") == "storage"
    assert under("throttled", "second-server") == "second-server"
    story = Story()
    story.fault("pause")
    invoke = story.ask(A)
    story.fault("throttled", path=f"{DIRECTORY}/MARKERS0")
    story.end(invoke, "ok", "created")
    story.breaks("G1", under="storage")


def test_flushed_before_ack_is_raised_before_what_follows_from_it() -> None:
    story = Story()
    story.start()
    story.end(story.ask(A), "ok", "created")
    with pytest.raises(VIOLATIONS["G1"]):
        raise_first(story.history(), judge(story.history()))
