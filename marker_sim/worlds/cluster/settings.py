"""The settings of a run that follow from its plan, the system and the storage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from marker_sim import __version__
from marker_sim.history import Event, Header, answer_bound_before_faults
from marker_sim.markers.choice import Choice
from marker_sim.names import parse_directory
from marker_sim.options import MarkerOptions, format_options
from marker_sim.plan import Plan
from marker_sim.seams import Capabilities
from marker_sim.system import MARKERS_TYPES, System

STORAGE_TIMEOUT_MS = 1_000
_CAPABILITIES = ("put_if_absent", "put_if_unchanged", "atomic_replace", "host_lock", "batched_markers")
DEADLINE_SECS = 30


class ClusterSettings:
    """The settings of one run.

    options, later_options: of all processes, and of the timeline servers after the first.
    choice: the marker mode of the plan, as the system takes it.
    directories: the marker directories that the plan names.
    """

    def __init__(self, plan: Plan, system: System, capabilities: Capabilities) -> None:
        self.plan = plan
        self.system = system
        self.capabilities = capabilities
        self.options = MarkerOptions(
            markers_type=MARKERS_TYPES[plan.mode],
            batch_num_threads=plan.num_threads,
            batch_interval_ms=plan.interval_ms,
            remote_timeout_secs=DEADLINE_SECS,
        )
        fewer = min(plan.num_threads, plan.restart_threads or plan.num_threads)
        self.later_options = replace(self.options, batch_num_threads=fewer)
        self.directories = tuple(parse_directory(path) for path in plan.directories)
        self.choice = system.choose(self.options, capabilities)

    def mode_of(self, markers: str) -> Choice:
        """The marker mode of a write that requests `markers` (plan.Write), as far as the system has it."""
        if markers in ("", self.plan.mode) or self.system.layout != "hudi":
            return self.choice  # With a private format a mode need not read markers of the other mode.
        choice = self.system.chosen(markers, self.capabilities, self.options)
        return choice if self.system.factory(choice.mode) else self.choice

    def header(
        self,
        world: Literal["simulated", "real", "spark"],
        plan: Plan,
        events: Iterable[Event],
        identity: bool,
    ) -> Header:
        """The header of a run.

        plan: as it was run, which a cluster that is played piece by piece adds to.
        identity: whether servers honour that of a create.
        """
        return Header(
            world=world,
            mode="direct" if plan.mode == "direct" else "timeline",
            storage=plan.storage,
            sut=self.system.name,
            sut_version=self.system.version or __version__,
            kit_version=__version__,
            profile=self.system.profile,
            layout="hudi" if self.system.layout == "hudi" else "names",
            identity=identity,
            num_threads=plan.num_threads,
            late_effect_ms=self.capabilities.late_effect_ms,
            answer_bound_ms=answer_bound_before_faults(events),
            storage_timeout_ms=STORAGE_TIMEOUT_MS,
            seed=plan.seed,
            options=format_options(self.options),
            capabilities={name: getattr(self.capabilities, name) for name in _CAPABILITIES},
            plan=plan.to_dict(),
        )
