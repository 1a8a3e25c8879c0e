"""A system in Python, by `package.module:factory`: it runs plans in the simulated world, below the kit's write client.

The reference and its mutants are such systems too; loading.py imports all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from marker_sim.errors import UsageError
from marker_sim.history import History
from marker_sim.loading import can_be_loaded, load_system, name_of
from marker_sim.markers.store import Factory
from marker_sim.plan import STORAGES, Op, Plan
from marker_sim.system import System
from marker_sim.targets.target import CampaignRequest, Target, TargetCapabilities
from marker_sim.worlds.simulated.cluster import Cluster
from marker_sim.worlds.simulated.fresh_reader import READER
from marker_sim.worlds.simulated.storage import CAPABILITIES
from marker_sim.worlds.simulated.watchdog import watched

# Storage models for `--storage`; an object store is tried with and without conditional requests.
MODELS = {
    "sim": STORAGES,
    "s3": ("s3", "s3-unconditional"),
    "local": ("local",),
    "hdfs": ("hdfs",),
}
OF_REFERENCE = TargetCapabilities(profile="reference", storages=MODELS, plans=True)
# Two names, the first one twice: the second needs what a class needs to change what it stored before.
EVERY_CALL = (
    *(Op(actor="executor-0", kind="create", name=f"f{n}_0-0-0_001.parquet.marker.CREATE") for n in (0, 0, 1)),
    *(Op(actor="executor-0", kind=kind) for kind in ("list", "list-data", "list-log", "exists", "delete")),
)
# The kit's write client runs on a factory, so it has a write path.
OF_FACTORY = TargetCapabilities(profile="python", storages=MODELS, plans=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonTarget(Target):
    """A system whose runs are plans."""

    can: TargetCapabilities = OF_REFERENCE

    def load(self) -> System:
        """The imported system."""
        return load_system(self.sut)

    def prepare(self, request: CampaignRequest, progress: Callable[[str], None]) -> None:
        """Import the system and make every call once without faults, in each requested place with a factory."""
        system = self.load()
        for place in served_places(system, request.modes, request.storages):
            try_every_call(system, *place)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTarget(PythonTarget):
    """A system that is given itself and not by name; other processes cannot load it."""

    system: System
    can: TargetCapabilities = OF_FACTORY

    def load(self) -> System:
        """The system."""
        return self.system


def target_of(system: Factory | System) -> PythonTarget:
    """The target of a factory or a system; by its name where other processes find it. UsageError for anything else."""
    if not isinstance(system, System) and can_be_loaded(system):
        return PythonTarget(sut=name_of(system), can=OF_FACTORY)
    loaded = load_system(system)
    return LoadedTarget(sut=loaded.name, system=loaded, can=replace(OF_FACTORY, profile=loaded.profile))


def try_every_call(system: System, mode: str, storage: str) -> History:
    """The history of a plan without faults that makes every call; UsageError where the class breaks the contract."""
    cluster = Cluster(Plan(mode=mode, storage=storage, ops=EVERY_CALL), system)
    with watched(lambda: cluster.scheduler.steps):
        history = cluster.run()
    for event in history.events:
        if event.process == READER and event.error:
            raise UsageError(
                f"{system.name} {event.error}, when a fresh instance listed the markers without any fault; correct it"
            )
    return history


def served(system: System, mode: str, storage: str) -> bool:
    """Whether the system has a factory for a mode, and for the mode that the storage turns it into."""
    if system.factory(mode) is None:
        return False
    return system.factory(system.chosen(mode, CAPABILITIES[storage]).mode) is not None


def served_places(system: System, modes: tuple[str, ...], storages: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The pairs of these modes and storages that a system has factories for; UsageError when there are none."""
    places = tuple((mode, storage) for mode in modes for storage in storages if served(system, mode, storage))
    if not places:
        asked = f"{' or '.join(modes)} markers on {', '.join(storages)}"
        raise UsageError(f"{system.name} has no factory for {asked}; give it one")
    return places


def parse(text: str) -> Target | None:
    """The target of `reference`, of a mutant or of a factory, None for any other text."""
    if text == "reference":
        return PythonTarget(sut=text)
    before, _, after = text.partition(":")
    if not before or not after:
        return None
    return PythonTarget(sut=text) if before == "mutant" else PythonTarget(sut=text, can=OF_FACTORY)
