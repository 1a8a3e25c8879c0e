"""What plans of the simulated world and plans for real servers draw, counted over the same number of seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate, pairwise

from marker_sim.faults import drawable
from marker_sim.plan import OPERATIONS, Plan
from marker_sim.unusual_names import DIRECTORIES, HOSTILE_NAMES, PARTITIONS
from properties.faces.search import make_plan
from properties.faces.targets import batching, plan_for_servers
from properties.faces.worlds import CANNOT, STORAGE_WIRE, WIRE

SEEDS = 800
STORAGES = ("local", "s3")
BATCHES = batching("{threads} {interval_ms}", None)
WIRES: dict[str, tuple[str, ...]] = {"local": (WIRE,), "s3": (WIRE, STORAGE_WIRE)}
LARGE = 50  # Clients that ask at once.


def simulated_plans(storage: str) -> list[Plan]:
    return [make_plan(seed, "timeline", storage) for seed in range(SEEDS)]


def plans_for_servers(storage: str) -> list[Plan]:
    return [plan_for_servers(seed, seed, storage, BATCHES, WIRES[storage]) for seed in range(SEEDS)]


def traits(plan: Plan) -> set[str]:
    """What a plan has, by name."""
    found = {f"operation {op.kind}" for op in plan.ops} | {f"fault {fault.kind.value}" for fault in plan.faults}
    asked = {op.name for op in plan.ops}
    folders = {folder for name in asked for folder in accumulate(name.split("/")[:-1], "{}/{}".format)}
    found |= {f"partition {part!r}" for part in PARTITIONS if part in folders}
    found |= {f"hostile name {name[:30]!r}" for name in HOSTILE_NAMES if name in asked}
    found |= {f"directory {path}" for path in DIRECTORIES if any(each.endswith(path) for each in plan.directories)}
    for directory in range(len(plan.directories)):
        own = [op for op in plan.ops if op.directory == directory]
        found |= {f"{second.kind} after {first.kind}" for first, second in pairwise(own)}
    names = Counter((op.directory, op.name) for op in plan.ops if op.kind == "create")
    found |= {"a name asked for more than once"} if any(count > 1 for count in names.values()) else set()
    instants = Counter(path.partition("/.hoodie/")[0] for path in plan.directories)
    found |= {"several instants of a table"} if any(count > 1 for count in instants.values()) else set()
    found |= {"several tables"} if len(instants) > 1 else set()
    found |= {f"{LARGE} clients or more"} if len({actor for op in plan.ops for actor in op.actors}) >= LARGE else set()
    found |= {"an operation for the second server"} if any(op.server for op in plan.ops) else set()
    return found


def shares(plans: Iterable[Plan]) -> Counter[str]:
    """In how many of the plans each trait is."""
    counts: Counter[str] = Counter()
    for plan in plans:
        counts.update(traits(plan))
    return counts


def possible(storage: str) -> tuple[str, ...]:
    """Every trait that plans of a storage ought to have somewhere."""
    kinds = drawable("timeline", storage, writes=False)
    return (
        *(f"operation {kind}" for kind in OPERATIONS),
        *(f"fault {kind.value}" for kind in kinds),
        *(f"{second} after {first}" for first in OPERATIONS for second in OPERATIONS),
        *(f"partition {part!r}" for part in PARTITIONS if part),
        *(f"directory {path}" for path in DIRECTORIES),
        "a name asked for more than once",
        "several instants of a table",
        "several tables",
        f"{LARGE} clients or more",
        "an operation for the second server",
    )


def reason(trait: str) -> str:
    """Why plans for servers do not have a trait, "" when they have to."""
    word, _, kind = trait.partition(" ")
    if word == "partition" and "\\ufeff" in kind:
        return "a server may refuse a byte order mark"
    return CANNOT.get(kind, "") if word == "fault" else ""
