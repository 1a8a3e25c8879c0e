"""Clients beside those of the swarm, where a client costs little: crowds, hot names, twins, short scripts."""

from __future__ import annotations

import re

from marker_sim.faults import Call, Fault, FaultKind, Step, When
from marker_sim.faults.model import Trigger
from marker_sim.plan import COPY, Op
from marker_sim.search.seeds import Draws
from marker_sim.unusual_names import PARTITIONS, twins

# Clients of a crowd; few on S3, because the kit's S3 does one call at a time.
CROWDS = {"local": (0, 0, 0, 0, 60, 150, 400), "s3": (0, 0, 0, 0, 20, 40, 60)}
# What is done once for each put of a file on local storage: where it is written in place, and where it is replaced.
_ONCE_A_PUT = (("open", "rename"), ("write", "rename"))
SHARES = (1, 1, 2, 4)  # Parts of a crowd, each with its own names, and sometimes its own directory.
HOT = {"local": (0, 0, 0, 6, 25), "s3": (0, 0, 0, 0, 6)}  # Clients that create one name at once.
HOT_NAMES = (1, 4)
SPACED = {"local": (0, 0, 0, 14, 25), "s3": (0, 0, 0, 0, 14)}  # Clients, one batch after the other.
SPACED_MS = 50  # Only with at most this interval between batches.
REFUSED = {"local": (20, 40, 80), "s3": (16, 24, 40)}  # Clients of a crowd during refused writes.
READERS = {"local": (0, 40, 120), "s3": (0, 30, 50)}  # Clients that read one directory at the same moment.
READS = ("list", "list", "list-data", "list-log", "exists")
LONG = "/".join(["d" * 200] * 4)  # A server may refuse longer names, which only hostile plans have.
SHORT_SCRIPTS = {False: (0, 2, 6), True: (4, 8)}  # Keys: whether there are two servers.
SCRIPTED = {"create": 9, "list": 4, "list-data": 1, "exists": 2, "delete": 4}
# Requests to a server before and after a change by the other, with names of equal length.
EXCHANGES = 10
LEARNS = (("create",), ("delete", "create"), ("delete", "create"), ("create", "create"), ("list",))
CHANGES = (("delete",), ("create",), ("delete", "create"), ("delete", "create", "create"))
ASKED = (("create",), ("create",), ("list",), ("create", "list"), ("exists",))
PAIRS = (0, 2, 5)  # Pairs of similar names.


class Directories(dict[str, int]):
    """The marker directories of a plan with their numbers; a new one gets the next."""

    def __missing__(self, path: str) -> int:
        self[path] = len(self)
        return self[path]


def killed(rng: Draws, trigger: Trigger) -> Fault:
    """A server that dies, and starts again at once or soon."""
    return Fault.of(FaultKind.KILL, "server", trigger, restart_ms=rng.of(0, 100))


def short_scripts(rng: Draws, directories: Directories, second: bool, most: int | None) -> list[Op]:
    """Single clients in a directory of their own, to be added to a plan.

    second: whether there are two servers. most: how many clients at most, None for any number.
    """
    ops: list[Op] = []
    for number in range(rng.choice(SHORT_SCRIPTS[second]))[:most]:
        directory = directories[f"{number}/t/.hoodie/.temp/{rng.of('1', '10')}"]
        exchanging = second and number % 2
        calls = _exchange(rng) if exchanging else _any_order(rng)
        count = 2 if exchanging else rng.of(1, 2, 3)
        names = [f"p/f{name}_0-0-0_001.parquet.marker.CREATE" for name in range(count)]
        for kind, server in calls:
            name = rng.choice(names) if kind == "create" else ""
            ops.append(Op(actor=f"executor-s{number}", kind=kind, directory=directory, name=name, server=server))
    return ops


def _any_order(rng: Draws) -> list[tuple[str, int]]:
    """Operations in a drawn order, in which each may follow each other one; some are for the second server."""
    second = rng.of(0.0, 0.3, 0.5)
    kinds = rng.choices(tuple(SCRIPTED), tuple(SCRIPTED.values()), k=rng.of(6, 10, 20))
    return [(kind, int(rng.random() < second)) for kind in kinds]


def _exchange(rng: Draws) -> list[tuple[str, int]]:
    """One server reads something, the other one changes it, and the first is asked again; several times."""
    calls: list[tuple[str, int]] = []
    for _ in range(EXCHANGES):
        one = rng.randrange(2)
        learns, changes, asked = rng.choice(LEARNS), rng.choice(CHANGES), rng.choice(ASKED)
        calls += [(kind, one) for kind in learns]
        calls += [(kind, 1 - one) for kind in changes]
        calls += [(kind, one) for kind in asked]
    return calls


def removed_elsewhere(rng: Draws, directories: Directories, askers: list[str]) -> tuple[list[Op], list[Fault]]:
    """Marker directories deleted by other programs: sometimes while all ask, and once while one client waits.

    That client creates names before and after: the same name and one of equal length; and it lists.
    """
    names = [f"away/r{number}_0-0-0_001.parquet.marker.CREATE" for number in range(3)]
    before = rng.choices(names, k=rng.of(1, 2, 4))
    after = [rng.choice(before), *(rng.of(*names, "") for _ in range(rng.of(1, 3)))]
    directory, actor = directories["away/t/.hoodie/.temp/1"], "executor-r0"
    ops = [
        Op(
            actor=actor,
            kind="create" if name else rng.of("list", "exists"),
            directory=directory,
            name=name,
            after_ms=rng.of(0, 0, 100, 400),
        )
        for name in (*before, *after)
    ]
    faults = [Fault.of(FaultKind.DIRECTORY_REMOVED, actor, Step(len(before) + 1))]
    if askers and rng.random() < 0.5:
        faults.append(Fault.of(FaultKind.DIRECTORY_REMOVED, rng.choice(askers), Step(rng.of(1, 2, 4))))
    return ops, faults


def around_a_failure(rng: Draws, storage: str, failing: tuple[int, ...], beside: int) -> list[Op]:
    """Crowds below directories whose storage fails, each client of which repeats its create; others next to them.

    They wait for each other no longer than for an answer, and so do the crowds.
    """
    crowds = [(directory, rng.choice(REFUSED[storage]), rng.of(0, 0, 60)) for directory in failing]
    return [
        Op(
            actor=f"executor-f{directory}",
            kind="create",
            directory=directory,
            name=f"around/f{COPY}_0-0-0_001.parquet.marker.CREATE",
            after_ms=after_ms,
            copies=clients,
            apart_ms=apart_ms,
        )
        for directory, clients, apart_ms in (*crowds, (beside, 12, rng.of(10, 60)))
        for after_ms in ((0, rng.of(0, 300, 900)) if directory in failing else (0,))
    ]


def killed_at_a_rewrite(rng: Draws, storage: str, directories: Directories, num_threads: int) -> tuple[list[Op], Fault]:
    """A server dies at one of the first writes of a file that holds answered names, some of which are asked for again.

    In a directory of its own, one client creates one name after the other, so that each is in its own batch: when each
    file was written once, the next write rewrites a file with names.
    """
    path, numbers = "late/t/.hoodie/.temp/1", range(num_threads + 4)
    directory = directories[path]
    ops = [
        Op(
            actor="executor-k0",
            kind="create" if number >= 0 else "list",
            directory=directory,
            name=f"late/k{number}_0-0-0_001.parquet.marker.CREATE" if number >= 0 else "",
        )
        for number in (*numbers, -1, *rng.sample(numbers, 3))
    ]
    when: When = rng.of("before", "after")
    operations = rng.choice(_ONCE_A_PUT) if storage == "local" else ("put",)
    trigger = Call(rf"^{re.escape(path)}/MARKERS\d+$", operations, num_threads + rng.of(1, 2, 3), when)
    return ops, killed(rng, trigger)


def crowd(rng: Draws, storage: str, first: int, directories: int, latin: bool) -> list[Op]:
    """Many clients that ask for a marker or a few at the same moment."""
    clients = rng.choice(CROWDS[storage])
    if not clients:
        return []
    partitions = [part for part in PARTITIONS if not latin or part.isascii()]
    shares, each, after_ms = rng.choice(SHARES), rng.of(1, 1, 3), rng.of(0, 0, 100, 400)
    everywhere, directory = rng.random() < 0.5, rng.randrange(directories)
    return [
        Op(
            actor=f"executor-{first + share}",
            kind="create",
            directory=rng.randrange(directories) if everywhere else directory,
            name=f"{rng.choice(partitions)}/c{share}-{COPY}_0-{turn}-0_001.parquet.marker.CREATE".lstrip("/"),
            request=f"c{share}-{COPY}-{turn}",
            after_ms=0 if turn else after_ms,
            copies=max(1, clients // shares),
        )
        for share in range(shares)
        for turn in range(each)
    ]


def hot(rng: Draws, storage: str, first: int, directories: int) -> list[Op]:
    """Clients that ask for the same names at the same moment."""
    clients, directory = rng.choice(HOT[storage]), rng.randrange(directories)
    return [
        Op(
            actor=f"executor-h{first}",
            kind="create",
            directory=directory,
            name=f"{rng.of('hot', LONG)}/h{number}_0-0-0_001.parquet.marker.CREATE",
            copies=clients,
            apart_ms=rng.of(0, 0, 1),
        )
        for number in range(rng.choice(HOT_NAMES) if clients else 0)
    ]


def readers(seed: int, storage: str, directories: int) -> list[Op]:
    """Clients that read a directory at the same moment, some of which read another one then."""
    rng = Draws(f"readers/1/{seed}/{storage}")
    clients, kinds = rng.choice(READERS[storage]), rng.choices(READS, k=2)
    first, other, after_ms = rng.randrange(directories), rng.randrange(directories), rng.of(0, 100, 400)
    return [
        Op(
            actor="executor-q0",
            kind=kind,
            directory=directory,
            after_ms=0 if number else after_ms,
            copies=clients // (number + 1),
        )
        for number, (kind, directory) in enumerate(zip(kinds, (first, other), strict=True))
        if clients
    ]


def repeated_listings(seed: int, directory: int) -> list[Op]:
    """A client that reads one directory again and again: at every endpoint, with and without compression."""
    rng = Draws(f"repeated/1/{seed}")
    kinds = ("list", "list-data", "list-log")
    forms = ("", "uncompressed", rng.of("", "last-on-connection"))
    reads = [(kind, form) for form in forms for kind in rng.sample(kinds, len(kinds))]
    return [
        Op(actor="executor-v0", kind=kind, directory=directory, form=form, after_ms=rng.of(0, 100, 200))
        for kind, form in reads
    ]


def side_by_side(seed: int, storage: str, directories: int) -> list[Op]:
    """A crowd at each of two servers, which ask for names of their own in one directory at the same time.

    Each client first sends a request to the second server, and so waits until that server serves.
    """
    rng = Draws(f"side by side/1/{seed}/{storage}")
    directory = rng.randrange(directories)
    clients, apart_ms = rng.of((15, 30), (30, 40), (30, 5), (12, 80))
    return [
        Op(
            actor=f"executor-t{server}",
            kind=kind,
            directory=directory,
            name=f"side/t{server}-{COPY}_0-0-0_001.parquet.marker.CREATE" if kind == "create" else "",
            server=asked,
            copies=clients,
            apart_ms=apart_ms if kind == "create" else 0,
        )
        for server in (0, 1)
        for kind, asked in (("exists", 1), ("create", server))
    ]


def spaced(rng: Draws, storage: str, first: int, directories: int, interval_ms: int) -> list[Op]:
    """Clients that come one after the other, so that each is in a batch of its own, and a listing after them."""
    clients = rng.choice(SPACED[storage]) if interval_ms <= SPACED_MS else 0
    if not clients:
        return []
    actor, directory = f"executor-b{first}", rng.randrange(directories)
    name = f"spaced/b{COPY}_0-0-0_001.parquet.marker.CREATE"
    pace_ms = interval_ms + 10
    create = Op(actor=actor, kind="create", directory=directory, name=name, copies=clients, apart_ms=pace_ms)
    listing = Op(actor=f"executor-l{first}", kind="list", directory=directory, after_ms=clients * pace_ms + 100)
    return [create, listing]


def with_twins(rng: Draws, ops: list[Op], forms: bool) -> list[Op]:
    """Clients that ask for names which look much like one that is asked for."""
    creates = [op for op in ops if op.kind == "create"]
    first = len({op.actor for op in ops})
    made: list[Op] = []
    for pair in range(rng.choice(PAIRS) if creates else 0):
        like = rng.choice(creates)
        for number, name in enumerate(twins(rng, like.name, forms)):
            actor = f"executor-{first + 2 * pair + number}"
            made.append(Op(actor=actor, kind="create", directory=like.directory, name=name, after_ms=like.after_ms))
    return made
