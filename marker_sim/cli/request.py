"""What was asked of `verify`, parsed once at the edge; every refusal says what was given and what to write instead."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from marker_sim.errors import UsageError
from marker_sim.judges.expect import Known, load_baseline
from marker_sim.judges.guarantees import parse_guarantees
from marker_sim.judges.profiles import Profile, load_profile

MODES = {"both": ("direct", "timeline"), "direct": ("direct",), "timeline": ("timeline",)}
# What `--storage` means in the simulated world; an object store is tried with and without conditional requests.
MODELS = {
    "sim": ("s3", "s3-unconditional", "local", "hdfs"),
    "s3": ("s3", "s3-unconditional"),
    "local": ("local",),
    "hdfs": ("hdfs",),
}
DIR_FORMATS = ("path", "file")
SEED_MAX = 2**31 - 1
BUDGET_MAX_S = 30 * 24 * 3600.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_KINDS = "reference, package.module:factory, http (with --start) or hudi:VERSION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One `verify`, complete and consistent.

    kind: who runs it. detail: the Hudi version for "hudi". modes: of the simulated world. storages: models there, one
    real storage for foreign systems. baseline: None without --expect. guarantees: None for all.
    """

    kind: Literal["python", "http", "hudi"]
    sut: str
    detail: str
    modes: tuple[str, ...]
    storages: tuple[str, ...]
    budget_s: float
    seed: int
    guarantees: frozenset[str] | None
    profile: Profile
    baseline: frozenset[Known] | None
    report: Path
    start: str
    reader: str
    dir_format: str
    argv: tuple[str, ...]


def parse_request(
    *,
    sut: str,
    mode: str,
    storage: str | None,
    budget: str,
    seed: str | None,
    guarantees: str | None,
    profile: str | None,
    expect: str | None,
    report: str,
    start: str | None,
    reader: str | None,
    dir_format: str | None,
    argv: Sequence[str],
) -> Request:
    """The request these words make; UsageError for the first thing wrong with them."""
    kind, detail = parse_sut(sut)
    if mode not in MODES:
        raise UsageError(f"--mode was given {mode!r}; write {_either(MODES)}")
    if kind == "python":
        storages = _simulated(storage)
        _refuse_foreign_options(sut, start=start, reader=reader, dir_format=dir_format)
    else:
        storages = _foreign(sut, mode, storage)
        _check_start(kind, sut, start)
    if dir_format is not None and dir_format not in DIR_FORMATS:
        raise UsageError(f"--dir-format was given {dir_format!r}; write {_either(DIR_FORMATS)}")
    return Request(
        kind=kind,
        sut=sut,
        detail=detail,
        modes=MODES[mode],
        storages=storages,
        budget_s=parse_duration(budget, "--budget"),
        seed=parse_seed(seed),
        guarantees=None if guarantees is None else parse_guarantees(guarantees),
        profile=load_profile(default_profile(sut) if profile is None else profile),
        baseline=None if expect is None else load_baseline(expect),
        report=Path(report),
        start=start or "",
        reader=reader or "",
        dir_format=dir_format or "path",
        argv=tuple(argv),
    )


def parse_sut(text: str) -> tuple[Literal["python", "http", "hudi"], str]:
    """Who runs a system under test, and the version for "hudi"."""
    name, colon, rest = text.partition(":")
    if text == "http":
        return "http", ""
    if name == "hudi":
        if not re.fullmatch(r"\d+(\.\d+)+([-.\w]*)", rest):
            raise UsageError(f"--sut was given {text!r}; write hudi:VERSION, for example hudi:1.0.2")
        return "hudi", rest
    if name in ("command", "hudi-spark"):
        raise UsageError(f"--sut was given {text!r}, which this version cannot run yet; accepted are {_KINDS}")
    if text != "reference" and not (colon and name and rest):
        raise UsageError(f"--sut was given {text!r}; accepted are {_KINDS}")
    return "python", ""


def default_profile(sut: str) -> str:
    """The shipped profile for a system; on a Python factory the kit's own write client runs, so it has a write path."""
    if sut == "reference" or sut.startswith("mutant:"):
        return "reference"
    if sut.startswith("hudi:"):
        return "hudi"
    return "python" if ":" in sut else "http"


def parse_duration(text: str, option: str) -> float:
    """Seconds in "40s", "2m", "8h" or "1500ms"; UsageError for anything else, zero and more than 30 days."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h)", text.strip(), re.ASCII)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0 < seconds <= BUDGET_MAX_S:
        raise UsageError(
            f"{option} was given {text!r}; write a number above 0 and its unit (ms, s, m or h), at most 720h, for"
            " example 40s, 2m, 8h or 1500ms"
        )
    return seconds


def parse_seed(text: str | None) -> int:
    """The seed given, or one drawn now."""
    if text is None:
        return secrets.randbelow(SEED_MAX + 1)
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or int(text) > SEED_MAX:
        raise UsageError(f"--seed was given {text!r}; write a whole number from 0 to {SEED_MAX}, or leave it out")
    return int(text)


def _simulated(storage: str | None) -> tuple[str, ...]:
    if storage is not None and storage not in MODELS:
        raise UsageError(f"--storage was given {storage!r}; write {_either(MODELS)}")
    return MODELS[storage or "sim"]


def _foreign(sut: str, mode: str, storage: str | None) -> tuple[str, ...]:
    if mode == "direct":
        raise UsageError(f"--mode was given 'direct', but --sut {sut} is a timeline server; leave --mode out")
    if storage in (None, "local"):
        return ("local",)
    if storage == "s3":
        raise UsageError(f"--storage s3 is not there yet for --sut {sut}; write --storage local")
    raise UsageError(f"--storage was given {storage!r}, which --sut {sut} cannot run on; write --storage local")


def _check_start(kind: str, sut: str, start: str | None) -> None:
    if kind == "hudi" and start is not None:
        raise UsageError(f"--start was given with --sut {sut}, whose command the kit composes; leave --start out")
    if kind == "http" and not (start or "").strip():
        raise UsageError(
            "--sut http needs the command that starts the server; write --start 'COMMAND {port} ...', for example"
            " --start './my-server --port {port} --dir {storage}'"
        )
    if kind == "http" and "{port}" not in (start or ""):
        raise UsageError(f"--start was given {start!r}; write {{port}} where the port belongs, for the kit picks it")


def _refuse_foreign_options(sut: str, **given: str | None) -> None:
    for name, value in given.items():
        if value is not None:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} was given with --sut {sut}; it belongs to --sut http, so leave it out")


def _either(words: Sequence[str] | dict[str, tuple[str, ...]]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"
