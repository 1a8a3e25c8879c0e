"""What was asked of `verify`, parsed once at the edge; every refusal says what was given and what to write instead."""

from __future__ import annotations

import math
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from marker_sim.errors import UsageError
from marker_sim.judges.baselines.baseline import Known, load_baseline
from marker_sim.judges.guarantees import parse_guarantees
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.loading import NAMES
from marker_sim.plan import STORAGES
from marker_sim.report.verdict import without_option
from marker_sim.targets.batching import parse_batch_threads
from marker_sim.targets.s3_endpoint import FORMS, Endpoint, parse_endpoint
from marker_sim.worker_pool import parse_jobs

MODES = {"both": ("direct", "timeline"), "direct": ("direct",), "timeline": ("timeline",)}
# What `--storage` means in the simulated world; an object store is tried with and without conditional requests.
MODELS = {
    "sim": STORAGES,
    "s3": ("s3", "s3-unconditional"),
    "local": ("local",),
    "hdfs": ("hdfs",),
}
SECRET_OPTION = "--s3-secret-key"
BUDGET = "40s"
RUNS_MAX = 100_000_000
# Below these a worker would spend most of its time on starting.
WORKERS_FROM_S = 5.0
WORKERS_FROM_RUNS = 200
SEED_MAX = 2**31 - 1
BUDGET_MAX_S = 30 * 24 * 3600.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_KINDS = ", ".join(f"{name} (with --start)" if name == "http" else name for name in NAMES)


Kind = Literal["python", "http", "hudi", "hudi-spark"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """One `verify`, complete and consistent.

    kind: who runs it. detail: the version of a Hudi. modes: of a system with more than one. storages: models there, one
    real storage for foreign systems. budget_s: infinite with `runs`, a number of plans. jobs: processes. baseline: None
    without --expect. guarantees: None for all. endpoint: None for the kit's own S3 front. identity: whether creates
    carry `requestid`. batch_threads: None for what was not said. argv: without the secret of an endpoint.
    """

    kind: Kind
    sut: str
    detail: str
    modes: tuple[str, ...]
    storages: tuple[str, ...]
    budget_s: float
    runs: int | None
    jobs: int
    stop_at_first: bool
    seed: int
    guarantees: frozenset[str] | None
    profile: Profile
    baseline: frozenset[Known] | None
    report: Path
    start: str
    reader: str
    dir_format: str
    argv: tuple[str, ...]
    endpoint: Endpoint | None = None
    identity: bool = False
    batch_threads: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignWords:
    """The options that only foreign systems have, as they were given; None and False for those that were not."""

    start: str | None = None
    reader: str | None = None
    dir_format: str | None = None
    identity: bool = False
    batch_threads: str | None = None
    s3_endpoint: str | None = None
    s3_bucket: str | None = None
    s3_access_key: str | None = None
    s3_secret_key: str | None = None

    def refuse_all(self, sut: str) -> None:
        """UsageError when one was given for a system that is none."""
        for option in self._given(""):
            raise UsageError(f"{option} was given with --sut {sut}; it belongs to --sut http, so leave it out")

    def check(self, kind: str, sut: str, storage: str) -> None:
        """UsageError for the first that does not fit the system and its storage."""
        _check_start(kind, sut, self.start, storage)
        if kind == "hudi" and self.identity:
            raise UsageError(f"--identity was given with --sut {sut}, whose requests carry none; leave --identity out")
        if kind == "hudi" and self.batch_threads is not None:
            raise UsageError(f"--batch-threads was given with --sut {sut}, which the kit tells them; leave it out")
        for option in self._given("s3_") if storage != "s3" else ():
            raise UsageError(f"{option} was given with --storage {storage}; write --storage s3, or leave {option} out")
        if self.dir_format is not None and self.dir_format not in FORMS[storage]:
            forms = _either(FORMS[storage])
            raise UsageError(f"--dir-format was given {self.dir_format!r} with --storage {storage}; write {forms}")

    def endpoint(self, environment: Mapping[str, str]) -> Endpoint | None:
        """The S3 endpoint they name, None for the kit's own."""
        return parse_endpoint(
            url=self.s3_endpoint,
            bucket=self.s3_bucket,
            access_key=self.s3_access_key,
            secret_key=self.s3_secret_key,
            environment=environment,
        )

    def _given(self, prefix: str) -> list[str]:
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name.startswith(prefix)}
        return [f"--{name.replace('_', '-')}" for name, value in values.items() if value not in (None, False)]


def parse_request(
    *,
    sut: str,
    mode: str,
    storage: str | None,
    budget: str | None,
    seed: str | None,
    guarantees: str | None,
    profile: str | None,
    expect: str | None,
    report: str,
    argv: Sequence[str],
    foreign: ForeignWords | None = None,
    runs: str | None = None,
    jobs: str | None = None,
    stop_at_first: bool = False,
) -> VerifyRequest:
    """The request these words make; UsageError for the first thing wrong with them."""
    words = foreign or ForeignWords()
    kind, detail = parse_sut(sut)
    if mode not in MODES:
        raise UsageError(f"--mode was given {mode!r}; write {_either(MODES)}")
    if kind == "python":
        storages = _simulated(storage)
        words.refuse_all(sut)
    else:
        storages = _foreign(kind, sut, mode, storage)
        if kind == "hudi-spark":
            words.refuse_all(sut)
        words.check(kind, sut, storages[0])
    seconds, number = _parse_extent(budget, runs, kind, sut)
    return VerifyRequest(
        kind=kind,
        sut=sut,
        detail=detail,
        modes=MODES[mode],
        storages=storages,
        budget_s=seconds,
        runs=number,
        jobs=_parse_workers(jobs, kind, sut, seconds, number),
        stop_at_first=stop_at_first,
        seed=parse_seed(seed),
        guarantees=None if guarantees is None else parse_guarantees(guarantees),
        profile=load_profile(default_profile(sut) if profile is None else profile),
        baseline=None if expect is None else load_baseline(expect),
        report=Path(report),
        start=words.start or "",
        reader=words.reader or "",
        dir_format=words.dir_format or "",
        argv=without_option(argv, SECRET_OPTION),
        endpoint=words.endpoint(os.environ),
        identity=words.identity,
        batch_threads=None if words.batch_threads is None else parse_batch_threads(words.batch_threads),
    )


def _parse_extent(budget: str | None, runs: str | None, kind: Kind, sut: str) -> tuple[float, int | None]:
    """For how many seconds, and how many plans; with a number of plans the seconds have no end."""
    if runs is None:
        return parse_duration(BUDGET if budget is None else budget, "--budget"), None
    if budget is not None:
        raise UsageError(f"--runs {runs} and --budget {budget} were given; write one of them")
    if kind != "python":
        raise UsageError(f"--runs was given with --sut {sut}, whose rounds take real time; write --budget")
    return math.inf, parse_number(runs, "--runs", RUNS_MAX)


def _parse_workers(jobs: str | None, kind: Kind, sut: str, seconds: float, runs: int | None) -> int:
    if kind != "python":
        if jobs not in (None, "1"):
            raise UsageError(f"--jobs was given {jobs!r} with --sut {sut}, which one process judges; leave --jobs out")
        return 1
    few = seconds < WORKERS_FROM_S or (runs is not None and runs < WORKERS_FROM_RUNS)
    return 1 if jobs is None and few else parse_jobs(jobs)


def parse_sut(text: str) -> tuple[Kind, str]:
    """Who runs a system under test, and the version of a Hudi."""
    name, colon, rest = text.partition(":")
    if text == "http":
        return "http", ""
    if name in ("hudi", "hudi-spark"):
        if not re.fullmatch(r"\d+(\.\d+)+([-.\w]*)", rest):
            raise UsageError(f"--sut was given {text!r}; write {name}:VERSION, for example {name}:1.0.2")
        return ("hudi" if name == "hudi" else "hudi-spark"), rest
    if name == "command":
        raise UsageError(f"--sut was given {text!r}, which this version cannot run yet; accepted are {_KINDS}")
    if text != "reference" and not (colon and name and rest):
        raise UsageError(f"--sut was given {text!r}; accepted are {_KINDS}")
    return "python", ""


def default_profile(sut: str) -> str:
    """The shipped profile for a system; on a Python factory the kit's own write client runs, so it has a write path."""
    if sut == "reference" or sut.startswith("mutant:"):
        return "reference"
    if sut.startswith(("hudi:", "hudi-spark:")):
        return sut.partition(":")[0]
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


def parse_number(text: str, option: str, most: int) -> int:
    """A whole number from 1 on."""
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not 1 <= int(text) <= most:
        raise UsageError(f"{option} was given {text!r}; write a whole number from 1 to {most}")
    return int(text)


def _simulated(storage: str | None) -> tuple[str, ...]:
    if storage is not None and storage not in MODELS:
        raise UsageError(f"--storage was given {storage!r}; write {_either(MODELS)}")
    return MODELS[storage or "sim"]


def _foreign(kind: str, sut: str, mode: str, storage: str | None) -> tuple[str, ...]:
    if mode == "direct" and kind != "hudi-spark":
        raise UsageError(f"--mode was given 'direct', but --sut {sut} is a timeline server; leave --mode out")
    if storage in (None, *FORMS):
        return (storage or "local",)
    raise UsageError(f"--storage was given {storage!r}, which --sut {sut} cannot run on; write {_either(FORMS)}")


def _check_start(kind: str, sut: str, start: str | None, storage: str) -> None:
    if kind == "hudi" and start is not None:
        raise UsageError(f"--start was given with --sut {sut}, whose command the kit composes; leave --start out")
    if kind == "http" and not (start or "").strip():
        raise UsageError(
            "--sut http needs the command that starts the server; write --start 'COMMAND {port} ...', for example"
            " --start './my-server --port {port} --dir {storage}'"
        )
    if kind == "http" and "{port}" not in (start or ""):
        raise UsageError(f"--start was given {start!r}; write {{port}} where the port belongs, for the kit picks it")
    for name in ("{endpoint}", "{bucket}"):
        if storage != "s3" and name in (start or ""):
            raise UsageError(
                f"--start was given {name}, which is there with --storage s3 alone; add it, or leave {name} out"
            )


def _either(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}"
