"""Stages, their shares of a night, and which of them are possible here.

A stage draws units from its streams. Shares are of the whole budget; the share of a stage that is not possible goes to
the others, and the rest at the end goes to the swarm, which never ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from marker_sim.errors import UsageError

SHARES = {"swarm": 50.0, "exhaustive": 20.0, "real": 20.0, "spark": 10.0}
FOREIGN_SHARES = {"foreign": 100.0}  # Of a night of a system whose runs take real time.
FOREIGN = {"foreign-local": "local", "foreign-s3": "s3"}
STREAMS = {
    "swarm": ("swarm",),
    "exhaustive": ("exhaustive",),
    "real": ("real-local", "real-s3"),
    "spark": ("spark",),
    "foreign": tuple(FOREIGN),
}
# What a night on Spark leaves out, and why.
ON_SPARK = dict.fromkeys(
    (*STREAMS["real"], *STREAMS["spark"]),
    "executors run plans in the simulated world alone; a night without --spark-master has it",
)
SERVER, SPARK = "server", "spark"  # Worlds of failures.
# A cluster of JVMs wants the machine for itself; everything else may run beside itself.
ALONE = frozenset({"spark"})
# Below this a stage would spend its share on starting up.
LEAST_S = {"swarm": 0.0, "exhaustive": 0.0, "real": 2.0, "spark": 240.0, "foreign": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyStage:
    """One stretch of a night.

    end_s: on the night's clock.
    streams: those that are possible here.
    """

    name: str
    end_s: float
    streams: tuple[str, ...]


def parse_stages(text: str | None) -> dict[str, float]:
    """Shares by stage from `swarm,real` or `swarm:60,real:40`; UsageError for anything else.

    Only a system whose plans run in the simulated world has stages to choose from.

    A stage without a number keeps its usual share; shares are relative to their sum.
    """
    if text is None:
        return dict(SHARES)
    shares: dict[str, float] = {}
    for word in text.split(","):
        name, colon, number = word.strip().partition(":")
        try:
            share = float(number) if colon else SHARES.get(name, 0.0)
        except ValueError:
            share = -1.0
        if name not in SHARES or name in shares or not 0 < share <= 1e6:
            accepted = ", ".join(SHARES)
            raise UsageError(
                f"--stages was given {text!r}; write some of {accepted}, each once and with a share above 0 if you"
                " like, for example swarm:60,real:40"
            )
        shares[name] = share
    return {name: shares[name] for name in SHARES if name in shares}


def schedule(
    shares: Mapping[str, float], budget_s: float, missing: Mapping[str, str]
) -> tuple[tuple[NightlyStage, ...], tuple[str, ...]]:
    """The stages in order with their ends, and a sentence for each stage or stream left out.

    missing: by stream, why it cannot run here and how it could.
    """
    left_out: list[str] = []
    possible: dict[str, tuple[str, ...]] = {}
    total = sum(shares.values())
    for name, share in shares.items():
        streams = tuple(stream for stream in STREAMS[name] if stream not in missing)
        left_out += [f"{stream}: {missing[stream]}" for stream in STREAMS[name] if stream in missing]
        own_s = budget_s * share / total
        if streams and own_s < LEAST_S[name]:
            left_out.append(f"{name}: its share of {own_s:.0f} s is too short, it needs {LEAST_S[name]:.0f} s")
        elif streams:
            possible[name] = streams
    stages, end_s = [], 0.0
    total = sum(shares[name] for name in possible)
    for name, streams in possible.items():
        end_s += budget_s * shares[name] / total
        stages.append(NightlyStage(name=name, end_s=end_s, streams=streams))
    return tuple(stages), tuple(left_out)
