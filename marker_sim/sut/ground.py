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

from marker_sim.errors import HarnessError
from marker_sim.real.local_world import LocalWorld
from marker_sim.real.rounds import KINDS, Stage
from marker_sim.real.storage_wire import STORAGE_WIRE
from marker_sim.real.wires.install import missing
from marker_sim.real.world import World
from marker_sim.sut.endpoint import FORMS, Endpoint


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


def kinds_on(storage: str, endpoint: Endpoint | None) -> tuple[str, ...]:
    """The kinds of rounds that can be played on a storage; those on the wire to it need toxiproxy."""
    if storage == "local":
        return tuple(kind for kind in KINDS if kind != STORAGE_WIRE)
    if endpoint is None:
        return tuple(kind for kind in KINDS if kind != STORAGE_WIRE or not missing())
    from marker_sim.real.site_world import NEED_THE_FRONT

    return tuple(kind for kind in KINDS if kind not in NEED_THE_FRONT)


@contextmanager
def open_ground(storage: str, dir_format: str, reader: str, endpoint: Endpoint | None) -> Iterator[Ground]:
    """Scratch files and storage for a campaign, gone afterwards; HarnessError when they cannot be had.

    dir_format: "" for the usual one.
    """
    form = dir_format or FORMS[storage][0]
    assert form in FORMS[storage], f"{form} is not for {storage}"
    scratch = _scratch()
    try:
        if storage == "local":
            (scratch / "storage").mkdir()
            world = partial(LocalWorld, root=scratch / "storage", form=form, command=reader)
            yield Ground(scratch=scratch, world=world, kinds=kinds_on(storage, endpoint))
        else:
            yield _object_store(scratch, form, reader, endpoint)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _object_store(scratch: Path, form: str, reader: str, endpoint: Endpoint | None) -> Ground:
    """Imported here, so that local storage needs neither boto3 nor moto."""
    from marker_sim.real import s3_world, site_world

    if endpoint is None:
        probed = s3_world.probe_front()
        front = partial(s3_world.FrontWorld, scheme=form, command=reader, probed=probed)
        why = missing()
        return Ground(
            scratch=scratch,
            world=front,
            kinds=kinds_on("s3", None),
            left_out=(f"a round of kind {STORAGE_WIRE}: {why}",) if why else (),
            probed=probed.to_dict(),
        )
    site = site_world.Site(
        url=endpoint.url, bucket=endpoint.bucket, access_key=endpoint.access_key, secret_key=endpoint.secret_key
    )
    probed = site_world.probe_site(site)
    return Ground(
        scratch=scratch,
        world=partial(site_world.SiteWorld, site=site, scheme=form, command=reader, probed=probed),
        kinds=kinds_on("s3", endpoint),
        left_out=site_world.NOT_ON_A_SITE,
        probed=probed.to_dict(),
    )


def _scratch() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="marker-sim-")).resolve()
    except OSError as error:
        raise HarnessError(f"no scratch directory can be made: {error.strerror or error}") from error
