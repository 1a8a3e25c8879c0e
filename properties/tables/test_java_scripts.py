"""Failures of tables that Hudi's Java client writes as Java programs; scenarios/test_hudi_java.py runs one."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest

from marker_sim.errors import UsageError
from marker_sim.faults import Call, Fault, FaultKind
from marker_sim.plan import Service, TableShape
from properties.faces.campaign import StoredPlan
from properties.faces.report import issue_text, script_of
from properties.faces.search import fates_of
from properties.faces.targets import ServerOptions, table_of
from properties.faces.worlds import (
    DRIVER,
    FUTURE_SETTINGS,
    FUTURES,
    PREPARED,
    STORAGE,
    Stage,
    StorageCall,
    TableStep,
    effect_of,
    shape_of,
    with_future,
    with_steps,
)

OVERRIDES = {
    "get": "FSDataInputStream open(", "list": "FileStatus[] listStatus(", "rename": "boolean rename(",
    "status": "FileStatus getFileStatus(",
    "delete": "boolean delete(", "rmdir": "boolean delete(", "mkdir": "boolean mkOneDirWithMode(",
    "open": "OutputStream createOutputStream(", "write": "OutputStream createOutputStream(",
}  # fmt: skip


def told(*faults: Fault, stage: Stage = "write", guarantee: str = "G15", sut: str = "hudi-java:1.2.0") -> StoredPlan:
    plan = with_steps(table_of("direct", 1), [TableStep(name="a step", stage=stage, faults=faults)])
    return StoredPlan(
        guarantee=guarantee, plan=plan, sut=sut, server=ServerOptions(), also=("G24", "G25"), message="it ends */",
    )  # fmt: skip


def called(*operations: str) -> Call:
    return Call(r"\.hoodie/\.temp/\d+$", operations)


@pytest.mark.parametrize("operation", sorted(OVERRIDES))
def test_every_fate_of_a_call_is_in_the_program_and_the_file_system_fails_no_other_calls(operation: str) -> None:
    fates = fates_of("local", StorageCall("driver-1", DRIVER, operation, "t/x"))
    for fate in fates:
        fault = fate.at(called(operation))
        text, language = script_of(told(replace(fault, target=DRIVER if fault.kind.row.kills else STORAGE)))
        assert language == "java" and re.search(
            rf'new Fault\("{operation}", "\^.*", 1, \d, "{effect_of(fault)}"\)', text
        )
        assert {name for name in OVERRIDES.values() if name in text} == {OVERRIDES[operation]}
    assert len(fates) > 1


@pytest.mark.parametrize(("kind", "operation"), [(FaultKind.FALSE_ANSWER, "request"), (FaultKind.TORN_WRITE, "rename")])
def test_what_the_kit_does_outside_of_the_calls_of_files_is_refused_in_a_sentence(
    kind: FaultKind, operation: str
) -> None:
    with pytest.raises(UsageError, match=f"the kit does {kind.value} outside of the calls of files"):
        script_of(told(Fault.of(kind, STORAGE, called(operation))))


def test_the_drivers_of_a_script_upgrade_a_table_from_the_second_on() -> None:
    plain = told(Fault.of(FaultKind.IO_ERROR, STORAGE, called("list")))
    shape = TableShape(version6=True, upgrades=True)
    text, _ = script_of(replace(plain, plan=replace(plain.own_plan, shape=shape)))
    assert "OPTIONS.keySet().removeAll(" in text and "removeAll(List.of" not in script_of(plain)[0]


def test_the_rollback_of_a_write_that_died_is_a_step_of_its_own_after_it() -> None:
    text, _ = script_of(told(Fault.of(FaultKind.IO_ERROR, STORAGE, called("list"), calls=4), stage="rollback"))
    steps = re.findall(r"new Step\((.*?), (true|false),\s*new Fault\((.*?)\)\)", text)
    assert [step[1] for step in steps] == ["true", "false"]
    assert steps[0][2].endswith('4, 1, "die-after"') and steps[1][2].endswith('1, 4, "error"')


def test_what_a_program_cannot_judge_is_refused_in_a_sentence_and_a_comment_does_not_end_early() -> None:
    fault = Fault.of(FaultKind.IO_ERROR, STORAGE, called("list"))
    with pytest.raises(UsageError, match="G25 writes-go-on cannot be shown by a script: it judges G13, G14"):
        script_of(told(fault, guarantee="G25"))
    text, _ = script_of(told(fault))
    assert text.index("*/") > text.index("FILE.java") and 'CLAIMS = List.of("G15", "G24")' in text
    assert "```java" in issue_text(told(fault))
    assert "getTableAvroSchema()" in script_of(told(fault, sut="hudi-java:1.1.1"))[0]
    built = replace(told(fault, sut="hudi-java:/builds/hudi"), version="1.1.1")
    assert "getTableAvroSchema()" in script_of(built)[0], "what was built says its version"


def test_a_program_about_data_without_a_marker_looks_for_one_whatever_call_fails() -> None:
    text, _ = script_of(told(Fault.of(FaultKind.IO_ERROR, STORAGE, called("mkdir")), guarantee="G13"))
    assert "is written, and no marker names it" in text and "static boolean marked(" in text
    text, _ = script_of(told(Fault.of(FaultKind.IO_ERROR, STORAGE, called("mkdir"))))
    assert "no marker names it" not in text


def test_a_program_plays_the_future_of_its_plan_with_the_settings_of_the_kit() -> None:
    fault = Fault.of(FaultKind.IO_ERROR, STORAGE, called("list"))
    assert "FUTURE" not in script_of(told(fault))[0]
    stored = told(fault, guarantee="G30")
    assert stored.plan is not None
    text, _ = script_of(replace(stored, plan=with_future(stored.plan, ("retry", "archive"))))
    assert 'FUTURE = {"retry", "archive"}' in text and 'CLAIMS = List.of("G30", "G24")' in text
    for name, value in FUTURE_SETTINGS.items():
        assert f'"{name.removeprefix("hoodie.")}={value}"' in text
    known = {
        *re.findall(r'case "(.*?)" ->', text),
        *re.findall(r"WRITES = List.of\((.*)\)", text)[0].replace('"', "").split(", "),
    }
    assert {step for steps in FUTURES.values() for step in steps} <= known
    begins_later = "n % PARTITIONS.length < PARTITIONS.length - 1"
    rests = "% PARTITIONS.length == 0);  // It is left alone."
    assert shape_of(stored.plan).grows and begins_later in text and shape_of(stored.plan).rests and rests in text
    usual = replace(shape_of(stored.plan), grows=False, rests=False)
    text, _ = script_of(replace(stored, plan=replace(stored.plan, shape=usual)))
    assert begins_later not in text and rests not in text


@pytest.mark.parametrize("service", get_args(Service))
def test_a_program_prepares_a_service_as_the_kit_does_and_knows_what_it_is_asked_for(service: Service) -> None:
    fault = Fault.of(FaultKind.IO_ERROR, STORAGE, called("list"))
    text, _ = script_of(told(fault, stage=service, guarantee="G19"))
    own = text.partition("how a step is done")[0]
    steps = re.findall(r'new Step\("(.*?)", (true|false), "(.*?)", (.*?)[,)]', own)
    assert [step[2] for step in steps] == [*(each for each in PREPARED[service] if each != "compact"), service]
    assert [step[1] for step in steps] == ["true"] * (len(steps) - 1) + ["false"], "what comes before follows at once"
    known = {*re.findall(r'case "(.*?)" ->', text), "write", "upgrade"}
    assert {step[2] for step in steps} <= known and "hoodie." not in steps[-1][3]
    early = service in ("compact", "clean", "archive")
    assert {step[3].split(" + ")[0] for step in steps[:-1]} == {"EARLY" if early else '""'}
    by_writes = {"clean": "clean.automatic", "archive": "archive.automatic", "upgrade": "write.auto.upgrade"}
    assert (f'" {by_writes.get(service)}=true"' in steps[-1][3]) == (service in by_writes), "and of writes after it"


def test_a_program_of_rows_that_a_restore_took_back_or_may_have_judges_them_so() -> None:
    fault = Fault.of(FaultKind.IO_ERROR, STORAGE, called("list"))
    plain, served = script_of(told(fault))[0], script_of(told(fault, stage="restore", guarantee="G16"))[0]
    assert "keys.removeAll(unknown)" in served and "unknown" not in plain and "SETTINGS" not in plain
