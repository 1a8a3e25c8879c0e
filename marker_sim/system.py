"""A system under test in Python: the factories of its two modes, or only one of them, and the write client on top."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from marker_sim.history import NO_SERVER
from marker_sim.markers.choice import Choice, choose_mode
from marker_sim.markers.client import TimelineMarkers
from marker_sim.markers.direct import direct_markers
from marker_sim.markers.protocol import Creates, handle
from marker_sim.markers.server import served_markers
from marker_sim.markers.store import Context, Factory, MarkerStore
from marker_sim.options import MarkerOptions
from marker_sim.seams import Capabilities, Reply, Request
from marker_sim.timeline import WriteStat
from marker_sim.writer.attempt import write_file
from marker_sim.writer.client import WriteClient
from marker_sim.writer.stage import Stage

DEFAULTS = MarkerOptions()
MARKERS_TYPES = {"direct": "DIRECT", "timeline": "TIMELINE_SERVER_BASED", NO_SERVER: "TIMELINE_SERVER_BASED"}


class Outside(Protocol):
    """The parts of a system that live outside of the kit's process and implement the processes of a run.

    ended   called for a dead process with the state that its stores shared (`Context.process`); may be called again
    check   called after each run; HarnessError when something outside failed, so that the run cannot be judged
    close   ends all of it
    reused  whether programs are used for several processes without having promised to forget their state
    stop_reuse   ends that for good, because a run failed or was not reproduced; returns whether programs were reused
    """

    reused: bool

    def ended(self, shared: dict[str, Any]) -> None: ...
    def check(self) -> None: ...
    def close(self) -> None: ...
    def stop_reuse(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """A system. direct: factory for executors and the driver. server: factory for the timeline server, by directory.

    layout: "hudi" when files are in Hudi's format, "names" when only a fresh instance can read them. choose: the mode
    for options and a storage. client: an executor's side of a timeline server; handle: how the server answers.
    write_client, stage, write_file: the driver's and the executors' part of a write. All of these are the reference's
    own unless they were changed on purpose. outside: None where everything is Python.
    """

    name: str
    version: str = ""
    direct: Factory | None = None
    server: Factory | None = None
    layout: str = "hudi"
    profile: str = "reference"
    choose: Callable[[MarkerOptions, Capabilities], Choice] = choose_mode
    client: Callable[[Context, str], MarkerStore] = TimelineMarkers
    handle: Callable[[Request, Callable[[str], MarkerStore], Callable[[str], Creates]], Reply] = handle
    write_client: Callable[..., WriteClient] = WriteClient
    write_file: Callable[..., WriteStat] = write_file
    stage: type[Stage] = Stage
    outside: Outside | None = None

    def factory(self, mode: str) -> Factory | None:
        """The factory of "direct" or "timeline", None where the system has none."""
        return self.direct if mode == "direct" else self.server

    def reader(self, mode: str) -> Factory:
        """The factory whose instance reads a mode's stored markers; direct markers read Hudi's format in every mode."""
        direct = self.direct if self.layout == "hudi" or mode == "direct" else None
        factory = direct or self.server
        assert factory is not None
        return factory

    def chosen(self, mode: str, capabilities: Capabilities, options: MarkerOptions = DEFAULTS) -> Choice:
        """The mode that the system uses when a mode is requested on a storage, or `NO_SERVER` (plan.Write)."""
        embedded = mode != NO_SERVER
        asked = replace(options, markers_type=MARKERS_TYPES[mode], embed_timeline_server=embedded)
        return self.choose(asked, capabilities)


def reference() -> System:
    """The reference, with both modes."""
    return System(name="reference", direct=direct_markers, server=served_markers)
