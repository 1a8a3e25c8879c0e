"""The options of `verify`, parsed once at the edge; every refusal says what was given and what to write instead."""

from __future__ import annotations

import math
import os
import re
import secrets
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marker_sim.errors import UsageError
from marker_sim.judges.guarantees import parse_guarantees
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.reading import either
from marker_sim.report.verdict import without_option
from marker_sim.surroundings.worker_pool import cores
from marker_sim.targets.server_settings import FORMS, THREADS_MAX, parse_endpoint
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import SERVER_OPTIONS, CampaignRequest, ServerOptions, Target

if TYPE_CHECKING:
    from marker_sim.judges.baselines.baseline import Known

MODES = {"both": ("direct", "timeline"), "direct": ("direct",), "timeline": ("timeline",)}
SECRET_OPTION = "--s3-secret-key"
BUDGET = "40s"
AGAINST = "against"
RUNS_MAX = 100_000_000
WRITERS_MAX = 3
JOBS_MAX = 256
# With less, a worker would spend most of its time on starting.
WORKERS_FROM_S = 5.0
WORKERS_FROM_RUNS = 200
SEED_MAX = 2**31 - 1
TABLE = "[tool.marker-sim] of pyproject.toml"
INSTEAD = {"runs": "budget", "budget": "runs"}  # Of two ways to say how long, that of the command line.
BUDGET_MAX_S = 30 * 24 * 3600.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def parse_server(
    words: Mapping[str, Any], target: Target, storage: str, environment: Mapping[str, str]
) -> ServerOptions:
    """The options of a server; UsageError for the first one that does not fit the system or its storage.

    words: of the command line, by option, as given; None and False for those left out.
    """
    options = {name: words[name] for name in SERVER_OPTIONS if words.get(name) not in (None, False)}
    for option in options:
        if option in target.can.refuses:
            raise UsageError(f"{_written(option)} was given with --sut {target.sut}{target.can.refuses[option]}")
    target.check_options(ServerOptions(start=options.get("start", "")), storage)
    s3 = {name.removeprefix("s3_"): options.pop(name) for name in tuple(options) if name.startswith("s3_")}
    for option in (f"--s3-{name.replace('_', '-')}" for name in s3 if storage != "s3"):
        raise UsageError(f"{option} was given with --storage {storage}; write --storage s3, or leave {option} out")
    form = options.get("dir_format")
    if form is not None and form not in FORMS[storage]:
        raise UsageError(f"--dir-format was given {form!r} with --storage {storage}; write {either(FORMS[storage])}")
    if "batch_threads" in options:
        options["batch_threads"] = parse_number(options["batch_threads"], "--batch-threads", THREADS_MAX)
    if "writers" in options:
        options["writers"] = parse_number(options["writers"], "--writers", WRITERS_MAX, 2)
    return ServerOptions(**options, endpoint=parse_endpoint(s3, environment))


def _written(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _baseline(expect: str | None) -> frozenset[Known] | None:
    if expect is None:
        return None
    from marker_sim.judges.baselines.baseline import load_baseline

    return load_baseline(expect)


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
    runs: str | None = None,
    jobs: str | None = None,
    stop_at_first: bool = False,
    against: str | None = None,
    against_start: str | None = None,
    write_baseline: Path | None = None,
    **server_words: Any,
) -> CampaignRequest:
    """The request that the options make; UsageError for the first wrong one. server_words: of `SERVER_OPTIONS`."""
    target, mode, storage = parse_target(sut), mode.lower(), storage and storage.lower()
    if mode not in MODES:
        raise UsageError(f"--mode was given {mode!r}; write {either(MODES)}")
    storages = _storages(target, mode, storage)
    server = parse_server(server_words, target, storages[0], os.environ)
    target = target.started_by(server)
    seconds, number = _parse_extent(budget, runs, target)
    request = CampaignRequest(
        target=target,
        modes=MODES[mode],
        storages=storages,
        budget_s=seconds,
        runs=number,
        jobs=_parse_workers(jobs, target, seconds, number),
        stop_at_first=stop_at_first,
        seed=parse_seed(seed),
        guarantees=None if guarantees is None else parse_guarantees(guarantees),
        profile=load_profile(target.can.profile if profile is None else profile),
        baseline=_baseline(expect),
        write_baseline=write_baseline,
        server=server,
        report=Path(report),
        argv=without_option(argv, SECRET_OPTION),
    )
    if against is None:
        if against_start is not None:
            raise UsageError("--against-start was given without --against; write --against http, or leave it out")
        return request
    words = {**server_words, "start": against_start}
    return replace(request, against=parse_against(request, against, mode, storage, words))


def parse_against(
    request: CampaignRequest, sut: str, mode: str, storage: str | None, server_words: Mapping[str, Any]
) -> CampaignRequest:
    """The request for the system of `--against`: the same as that for `--sut`, judged by the same profile.

    server_words: of `SERVER_OPTIONS`, with its own command; those that it does not take are for the other one.
    """
    try:
        target = parse_target(sut)
        own = {name: word for name, word in server_words.items() if name == "start" or name not in target.can.refuses}
        storages = _storages(target, mode, storage)
        server = parse_server(own, target, storages[0], os.environ)
    except UsageError as error:
        raise UsageError(str(error).replace("--sut", "--against").replace("--start", "--against-start")) from error
    if target.can.world != request.target.can.world:
        raise UsageError(
            f"--against was given {sut!r}, which runs in {target.can.world}, and --sut {request.target.sut} in"
            f" {request.target.can.world}; give two systems that can run the same plans"
        )
    _check_same_placeholders(request.server.start, server.start)
    return replace(
        request, target=target, storages=storages, server=server, baseline=None, report=request.report / AGAINST
    )


def _check_same_placeholders(one: str, other: str) -> None:
    """UsageError if only one command sets how to batch, so that plans differ. The kit's own commands do."""
    for name in ("{threads}", "{interval_ms}"):
        has = [name in command or not command for command in (one, other)]
        if has[0] != has[1]:
            option = "--start" if has[1] else "--against-start"
            raise UsageError(
                f"{option} has no {name}, but the other system's command has it, so plans would differ; add it"
            )


def _parse_extent(budget: str | None, runs: str | None, target: Target) -> tuple[float, int | None]:
    """The seconds and the number of plans of a search; with a number of plans, the seconds are infinite."""
    if runs is None:
        return parse_duration(BUDGET if budget is None else budget, "--budget"), None
    if budget is not None:
        raise UsageError(f"--runs {runs} and --budget {budget} were given; write one of them")
    if not target.can.plans:
        raise UsageError(f"--runs was given with --sut {target.sut}, whose runs take real time; write --budget")
    return math.inf, parse_number(runs, "--runs", RUNS_MAX)


def _parse_workers(jobs: str | None, target: Target, seconds: float, runs: int | None) -> int:
    if not target.can.plans:
        if jobs not in (None, "1"):
            raise UsageError(
                f"--jobs was given {jobs!r} with --sut {target.sut}, which one process judges; leave --jobs out"
            )
        return 1
    few = seconds < WORKERS_FROM_S or (runs is not None and runs < WORKERS_FROM_RUNS)
    return 1 if jobs is None and few else parse_jobs(jobs)


def parse_duration(text: str, option: str) -> float:
    """Seconds in "40s", "2m", "8h" or "1500ms"; UsageError for anything else, zero and more than 30 days."""
    seconds = seconds_in(text)
    if seconds is None or not 0 < seconds <= BUDGET_MAX_S:
        raise UsageError(
            f"{option} was given {text!r}; write a number above 0 and its unit (ms, s, m or h), at most 720h, for"
            " example 40s, 2m, 8h or 1500ms"
        )
    return seconds


def seconds_in(text: str) -> float | None:
    """The seconds in a number and its unit, None for anything else."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)", text.strip(), re.ASCII)
    return float(match[1]) * _UNITS[match[2]] if match else None


def parse_seed(text: str | None) -> int:
    """The seed given, or one drawn now."""
    if text is None:
        return secrets.randbelow(SEED_MAX + 1)
    if not re.fullmatch(r"\d{1,10}", text, re.ASCII) or int(text) > SEED_MAX:
        raise UsageError(f"--seed was given {text!r}; write a whole number from 0 to {SEED_MAX}, or leave it out")
    return int(text)


def parse_number(text: str, option: str, most: int, least: int = 1) -> int:
    """A whole number between two."""
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or not least <= int(text) <= most:
        raise UsageError(f"{option} was given {text!r}; write a whole number from {least} to {most}")
    return int(text)


def parse_jobs(text: str | None) -> int:
    """The number of `--jobs`, one for each core when left out; UsageError for anything else."""
    return min(cores(), JOBS_MAX) if text is None else parse_number(text, "--jobs", JOBS_MAX)


def _storages(target: Target, mode: str, storage: str | None) -> tuple[str, ...]:
    """The storages that `--storage` stands for; UsageError for a mode or a storage that the target does not have."""
    can = target.can
    if not set(MODES[mode]) & set(can.modes):
        raise UsageError(f"--mode was given {mode!r}, but --sut {target.sut} is a timeline server; leave --mode out")
    if storage is None:
        return next(iter(can.storages.values()))
    if storage not in can.storages:
        which = "" if can.plans else f", which --sut {target.sut} cannot run on"
        raise UsageError(f"--storage was given {storage!r}{which}; write {either(can.storages)}")
    return can.storages[storage]


def settings_words(flags: Mapping[str, bool], given: Collection[str]) -> list[str]:
    """The words for what `[tool.marker-sim]` of pyproject.toml sets and the command line does not, for `verify` alone.

    They are words, so that a report names the whole command. UsageError for a key that is no option.
    flags: the options, and which of them take no value. given: those of the command line.
    """
    try:
        table = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8")).get("tool", {}).get("marker-sim", {})
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UsageError(f"pyproject.toml cannot be read: {error}") from error
    words = []
    for name, value in table.items():
        if name not in flags:
            raise UsageError(f"{TABLE} has a key {name!r}; write options of verify: {either(sorted(flags))}")
        if name not in given and INSTEAD.get(name) not in given and not (flags[name] and value is False):
            words.append(f"--{name}" if flags[name] and value is True else f"--{name}={value}")
    return words
