"""Whether what was asked for can run here: looked at before an earlier report is touched and anything is started."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable

from marker_sim.campaign.engine import served_combinations
from marker_sim.cli.request import VerifyRequest
from marker_sim.errors import HarnessError, UsageError
from marker_sim.loading import load_system
from marker_sim.requirements import lacking


def check_ready(request: VerifyRequest, progress: Callable[[str], None]) -> None:
    """UsageError or HarnessError for the first thing that the request lacks; fetches what a cache does not hold."""
    if request.kind == "python":
        served_combinations(load_system(request.sut), request.sut, request.modes, request.storages)
        return
    storage = request.storages[0]
    why = lacking(f"{request.kind} on {storage}")
    if why:
        raise HarnessError(f"--sut {request.sut} needs {why}")
    if request.kind == "http":
        _check_program("--start", request.start)
    else:
        _check_hudi(request, storage, progress)
    if request.reader:
        _check_program("--reader", request.reader)
    if request.endpoint is not None:
        from marker_sim.worlds.http.external_s3 import ExternalS3, probe_site

        at = request.endpoint
        probe_site(ExternalS3(url=at.url, bucket=at.bucket, access_key=at.access_key, secret_key=at.secret_key))


def short_budget(request: VerifyRequest) -> str:
    """What the budget of a foreign system leaves out, in a sentence; "" when it has room for all, or nobody can say."""
    if request.kind == "hudi-spark":
        from marker_sim.worlds.hudi_spark.forecast import forecast

        return forecast(request.detail, request.modes, request.storages[0], request.seed, request.budget_s).sentence
    if request.kind not in ("http", "hudi"):
        return ""
    from marker_sim.targets.http import room_of
    from marker_sim.targets.run_environment import kinds_on
    from marker_sim.worlds.http.wire_rounds import kinds_here

    kinds, _ = kinds_here(kinds_on(request.storages[0], request.endpoint))
    return room_of(request.seed, request.budget_s, kinds)


def _check_program(option: str, text: str) -> None:
    """The program that a command begins with, unless it has a placeholder in its name."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} {text!r} is not a valid command line: {error}") from error
    if not words:
        raise UsageError(f"{option} was given an empty command; write the command")
    program = words[0]
    if "{" not in program and shutil.which(program) is None:
        there = "is there and cannot be run; make it executable" if os.path.isfile(program) else "was not found"
        raise HarnessError(f"{option}: the program {program!r} {there}; give its full path or put it on PATH")


def _check_hudi(request: VerifyRequest, storage: str, progress: Callable[[str], None]) -> None:
    """Java, the bundle and for S3 its client."""
    from marker_sim.targets.hudi import S3A, bundle, check_version, find_java

    check_version(request.detail, request.kind)
    find_java()
    bundle(request.detail).find(progress)
    if storage == "s3":
        S3A.find(progress)
