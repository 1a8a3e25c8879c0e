"""Plans of hostile input for servers in real time: requests that must be refused, and odd names that must be kept.

    unusual names are created, one by one or all at once ─► the server dies ─► read, create again, read

Meanwhile other clients ask for what must be refused: names, and directories that are none of markers. One directory is
written in several ways, by creates, reads, and a deletion at the end. After the death what was stored is read back, and
creates rewrite the files. Names one after the other are in a batch each, so that they fill many files where a server
has many.
"""

from __future__ import annotations

from collections.abc import Iterator

from marker_sim.faults import Step
from marker_sim.plan import MALFORMED, SPELLINGS, Op, Plan
from marker_sim.search.crowds import killed
from marker_sim.search.merged_plans import batches, in_other_forms
from marker_sim.search.seeds import Draws
from marker_sim.unusual_names import DIRECTORIES, KEPT, REFUSED

PLAIN = tuple(f"dt=1/plain{number}_0-0-0_001.parquet.marker.CREATE" for number in range(8))
ASKERS = 4  # Clients that send requests that must be refused.
SPELLED_AT_ONCE = 6  # Creates of each client.
AGAIN = 8  # Number of names that are created again.
ASKED_MS = 200  # By then all requests are sent, mostly, except names one after the other.
LATER_MS = 500  # By then the server has died; for clients without another wait.
READS = ("list", "list-data", "list-log", "exists")
ODD, SPELLED = 0, 1  # Indices of directories.


def make_hostile_plan(seed: int, storage: str, threads: tuple[int, ...], intervals_ms: tuple[int, ...]) -> Plan:
    """The plan of a seed for a timeline server on "local" or "s3". threads, intervals_ms: settings to choose from."""
    rng = Draws(f"hostile/1/{seed}/{storage}")
    one_by_one = rng.random() < 0.5
    num_threads, interval_ms = batches(rng, (max(threads),) if one_by_one else threads, intervals_ms)
    names = rng.sample((*PLAIN, *KEPT), len(PLAIN) + len(KEPT))
    client_of = {name: "executor-0" if one_by_one else f"executor-{number}" for number, name in enumerate(names)}
    before = [
        *(Op(actor=client, kind="create", directory=ODD, name=name) for name, client in client_of.items()),
        *_refused(rng),
        *_spelled_at_once(),
        _later(PLAIN[-2], ASKED_MS),
    ]
    again = [
        Op(actor=client_of[name], kind="create", directory=ODD, name=name, after_ms=0 if one_by_one else LATER_MS)
        for name in rng.sample(names, AGAIN)
    ]
    deletion = Op(actor="executor-0", kind="delete", directory=SPELLED, spelled=rng.choice(SPELLINGS))
    after = (_later(PLAIN[-1], LATER_MS), *_reads(), deletion, *_reads())
    return Plan(
        mode="timeline",
        storage=storage,
        num_threads=num_threads,
        interval_ms=interval_ms,
        directories=tuple(rng.sample(DIRECTORIES, 2)),
        ops=in_other_forms(seed, (*before, *_reads(), *again, *after)),
        faults=(killed(rng, Step(len(before))),),
        seed=seed,
    )


def _spelled_at_once() -> Iterator[Op]:
    """Creates in one directory by a few clients at once, each of which writes it in a spelling of its own."""
    for number in range(SPELLED_AT_ONCE):
        for client, form in enumerate(("", *SPELLINGS)):
            name = f"dt=1/spelled{client}_{number}-0-0_001.parquet.marker.CREATE"
            yield Op(actor=f"executor-s{client}", kind="create", directory=SPELLED, name=name, spelled=form)


def _later(name: str, after_ms: int) -> Op:
    return Op(actor="executor-s", kind="create", directory=SPELLED, name=name, after_ms=after_ms)


def _refused(rng: Draws) -> Iterator[Op]:
    """Every request that must be refused, in a drawn order, by a few clients."""
    asked = [*((name, "") for name in REFUSED), *((PLAIN[0], form) for form in MALFORMED)]
    for number, (name, form) in enumerate(rng.sample(asked, len(asked))):
        yield Op(actor=f"executor-r{number % ASKERS}", kind="hostile", directory=ODD, name=name, spelled=form)


def _reads() -> Iterator[Op]:
    """One client lists both directories after a pause; one of them in every spelling of its name."""
    for number, kind in enumerate(READS):
        yield Op(actor="executor-0", kind=kind, directory=ODD, after_ms=0 if number else LATER_MS)
        for form in ("", *SPELLINGS):
            yield Op(actor="executor-0", kind=kind, directory=SPELLED, spelled=form)
