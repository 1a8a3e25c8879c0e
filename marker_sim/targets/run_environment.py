"""The surroundings of a campaign against a foreign server: scratch files, storage of its runs, and their limits.

    local   a fresh directory
    s3      the kit's front, or an endpoint of the user's own

An object store is probed before anything is judged on it; one that does not keep what S3 promises is the kit's
surroundings, and what it does to a server would be held against the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from marker_sim.errors import HarnessError
from marker_sim.surroundings.files import scratch_directory
from marker_sim.targets.server_settings import FORMS
from marker_sim.worlds.door.available import refused
from marker_sim.worlds.http.local_world import LocalWorld
from marker_sim.worlds.http.plan_wires import STORAGE_WIRE, WIRE
from marker_sim.worlds.http.world import Endpoint, RunGround, RunStorage
from marker_sim.worlds.proxies.install import missing


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnvironment:
    """The surroundings of runs. world: the storage. wires: connections that can fail. left_out: what cannot be done.

    probed: what the honesty probe found, None for a file system.
    """

    scratch: Path
    world: Callable[[RunGround], RunStorage]
    wires: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    probed: dict[str, Any] | None = None


def wires_on(storage: str, endpoint: Endpoint | None) -> tuple[str, ...]:
    """The connections that can be made to fail here: none without toxiproxy."""
    if missing():
        return ()
    return (WIRE, STORAGE_WIRE) if storage == "s3" and endpoint is None else (WIRE,)


@contextmanager
def open_ground(storage: str, dir_format: str, reader: str, endpoint: Endpoint | None) -> Iterator[RunEnvironment]:
    """The surroundings for a campaign, removed at its end; HarnessError when they are not available.

    dir_format: "" for the usual one.
    """
    wires, why = wires_on(storage, endpoint), missing()
    lacking = (f"faults of connections: {why}",) if why else ()
    form = dir_format or FORMS[storage][0]
    assert form in FORMS[storage], f"{form} is not for {storage}"
    check_door(storage)
    with scratch_directory() as scratch:
        if storage == "local":
            (scratch / "storage").mkdir()
            world = partial(LocalWorld, root=scratch / "storage", form=form, command=reader)
            yield RunEnvironment(scratch=scratch, world=world, wires=wires, left_out=lacking)
        else:
            ground = _object_store(scratch, form, reader, endpoint, wires)
            yield replace(ground, left_out=(*ground.left_out, *lacking))


def check_door(storage: str) -> None:
    """HarnessError when processes are to use local storage and their calls cannot be stopped here."""
    if storage == "local" and (closed := refused()):
        raise HarnessError(
            f"--storage local needs storage calls of processes to stop at the kit, which is refused here: {closed};"
            " give --storage s3"
        )


def _object_store(
    scratch: Path, form: str, reader: str, endpoint: Endpoint | None, wires: tuple[str, ...]
) -> RunEnvironment:
    """The surroundings on an object store; imported here, so that local storage needs neither boto3 nor moto."""
    from marker_sim.worlds.http import s3_worlds

    if endpoint is None:
        probed = s3_worlds.probe_front()
        front = partial(s3_worlds.FrontWorld, scheme=form, command=reader, probed=probed)
        return RunEnvironment(scratch=scratch, world=front, wires=wires, probed=probed.to_dict())
    probed = s3_worlds.probe_site(endpoint)
    return RunEnvironment(
        scratch=scratch,
        world=partial(s3_worlds.ExternalS3World, site=endpoint, scheme=form, command=reader, probed=probed),
        wires=wires,
        left_out=s3_worlds.NOT_ON_A_SITE,
        probed=probed.to_dict(),
    )
