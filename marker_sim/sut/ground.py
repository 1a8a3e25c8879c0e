"""What a campaign against a foreign server stands on: scratch files, the storage of each round, its limits.

    local   a fresh directory
    s3      the kit's front, one to each round, or an endpoint of the user's own

An object store is probed before anything is judged on it; one that does not keep what S3 promises is the kit's
surroundings, and what it does to a server would be held against the server.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError, UsageError
from marker_sim.real.local_world import FORMS, LocalWorld
from marker_sim.real.rounds import KINDS, Stage
from marker_sim.real.world import World
from marker_sim.sut.endpoint import Endpoint

SCHEMES = ("s3a", "s3", "s3n")
DEFAULT_FORMS = {"local": "path", "s3": "s3a"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """world: the storage under a round. kinds: of rounds that can be played. left_out: what cannot be done here.

    probed: what the honesty probe found, None for a file system.
    """

    scratch: Path
    world: Callable[[Stage], World]
    kinds: tuple[str, ...] = KINDS
    left_out: tuple[str, ...] = ()
    probed: dict[str, Any] | None = None


def check_ground(storage: str, dir_format: str, endpoint: Endpoint | None) -> str:
    """The form in which requests write directories; UsageError for what cannot be asked for."""
    forms = {"local": ("path", "file"), "s3": SCHEMES}.get(storage)
    if forms is None:
        raise UsageError(f"--storage {storage} was given with a foreign server; write local or s3")
    form = dir_format or DEFAULT_FORMS[storage]
    if form not in forms:
        *most, last = forms
        raise UsageError(f"--dir-format was given {form!r} with --storage {storage}; write {', '.join(most)} or {last}")
    if endpoint is not None and storage != "s3":
        raise UsageError(f"--s3-endpoint was given with --storage {storage}; write --storage s3, or leave it out")
    return form


@contextmanager
def open_ground(storage: str, dir_format: str, reader: str, endpoint: Endpoint | None) -> Iterator[Ground]:
    """Scratch files and storage for a campaign, gone afterwards; HarnessError when they cannot be had."""
    form = check_ground(storage, dir_format, endpoint)
    scratch = _scratch()
    try:
        if storage == "local":
            assert form in FORMS
            (scratch / "storage").mkdir()
            world = partial(LocalWorld, root=scratch / "storage", form=form, command=reader)
            yield Ground(scratch=scratch, world=world)
        else:
            yield _object_store(scratch, form, reader, endpoint)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _object_store(scratch: Path, form: str, reader: str, endpoint: Endpoint | None) -> Ground:
    """Imported here, so that local storage needs neither boto3 nor moto."""
    from marker_sim.real import s3_world

    if endpoint is None:
        probed = s3_world.probe_front()
        world: Callable[[Stage], World] = partial(
            s3_world.FrontWorld, scheme=form, command=reader, capabilities=probed.capabilities
        )  # fmt: skip
        return Ground(scratch=scratch, world=world, probed=probed.to_dict())
    site = s3_world.Site(endpoint.url, endpoint.bucket, endpoint.access_key, endpoint.secret_key)
    probed = s3_world.probe_site(site)
    world = partial(s3_world.SiteWorld, site=site, scheme=form, command=reader, capabilities=probed.capabilities)
    kinds = tuple(kind for kind in KINDS if kind not in s3_world.NEED_THE_FRONT)
    return Ground(scratch=scratch, world=world, kinds=kinds, left_out=s3_world.NOT_ON_A_SITE, probed=probed.to_dict())


def _scratch() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="marker-sim-")).resolve()
    except OSError as error:
        raise HarnessError(f"no scratch directory can be made: {error.strerror or error}") from error
