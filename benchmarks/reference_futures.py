"""What becomes of tables that the reference wrote: many simulated runs, each with a future, judged by G30 and G31.

Right are the rows of completed commits. G24 is what Hudi's rule makes of a table before the first step: where a failed
instant is older than all that is left on the timeline, its files count as committed at once.

    python benchmarks/reference_futures.py --runs 100000 [--seed 1] [--jobs 2] [--mutant NAME]

The reference has no table services, so this plays them over the files that a run left, as Hudi's would be: a commit
to a group of its own, a clean that keeps the latest slice of each group, and an archive of all but the last commit,
in front of the first pending instant; three times. Its reader goes by Hudi's rule: a base file counts as committed
when its instant is completed, or older than the timeline; a log file that no commit names, when its base file does
and nothing is pending after an archiving, for its name does not say who wrote it. Plans are those of `verify` with
writes, without what a table held before. Tables with a late write (G20), which nobody promises to prevent, are
counted apart. With --mutant a mutant of the reference runs instead.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

from marker_sim.campaign.pieces import SearchSettings
from marker_sim.campaign.runs import execute
from marker_sim.campaign.sources.swarm import Swarm
from marker_sim.history import Event, Header, History
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import load_profile
from marker_sim.mutants.load import find_mutant, load_mutant
from marker_sim.plan import PLACES
from marker_sim.search.writes import make_write_plan
from marker_sim.system import reference
from marker_sim.timeline import ROLLBACK, Entry, State, decode_commit, parse_data_file, parse_entry
from marker_sim.writer.slices import decode_rows, encode_rows, table_rows

CHUNK = 500
TIMES = 3


def shown(rows: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Rows as a history has them."""
    return tuple(sorted(f"{key.replace('=', '~')}={value}" for key, value in rows))


class Table:
    """The files of one table after a run, the rows of its completed commits, and the history of its future."""

    def __init__(self, name: str, files: dict[str, bytes], rows: dict[str, str]) -> None:
        self.name = name
        self.committed = shown(rows.items())
        self.data: dict[str, bytes] = {}
        self.entries: dict[Entry, tuple[str, ...]] = {}
        self.events: list[Event] = []
        self.archived: list[str] = []
        for path, content in sorted(files.items()):
            relative = path.removeprefix(f"{name}/")
            if not relative.startswith(".hoodie/"):
                self.data[relative] = content
            elif (entry := parse_entry(path)) is not None and entry.path(name) == path:
                done = entry.state is State.COMPLETED and entry.action != ROLLBACK
                self.entries[entry] = tuple(f"wrote {stat.path}" for stat in decode_commit(content)) if done else ()
        self.newest = max((entry.instant for entry in self.entries), default="2")

    def add(self, process: str, kind: Any, operation: str, **columns: Any) -> int:
        index = len(self.events)
        place = {"table": self.name, "instant": "", **columns}
        self.events.append(Event(index, index, process, "kit", kind, operation, **place))
        return index

    def completed(self) -> list[Entry]:
        """Completed commits, oldest first."""
        done = (e for e in self.entries if e.state is State.COMPLETED and e.action not in (ROLLBACK, "clean"))
        return sorted(done, key=lambda entry: entry.instant)

    def pending(self) -> set[str]:
        over = {entry.instant for entry in self.entries if entry.state is State.COMPLETED}
        return {entry.instant for entry in self.entries} - over

    def slices(self) -> dict[tuple[str, str], list[tuple[str, list[str]]]]:
        """The visible slices of each group, newest first: the instant, and the paths."""
        commits, pending = self.completed(), self.pending()
        known = {entry.instant for entry in commits}
        first = min(known | pending, default="")
        named = {fact.partition(" ")[2] for entry in commits for fact in self.entries[entry]} | {*self.archived}
        found: dict[tuple[str, str], dict[str, list[str]]] = {}
        for path in sorted(self.data):
            file = parse_data_file(path)
            if file is None:
                continue
            seen = file.instant in known or file.instant < first
            if file.log:
                seen = path in named or (bool(self.archived) and not pending)
            if seen:
                found.setdefault((file.partition, file.file_id), {}).setdefault(file.instant, []).append(path)
        return {group: sorted(own.items(), reverse=True) for group, own in found.items()}

    def read(self, cause: int) -> None:
        """Read the table as it is now."""
        self.add("kit", "observe", "audit", value="begin", caused_by=cause)
        for entry, facts in sorted(self.entries.items(), key=lambda each: each[0].path(self.name)):
            said = (f"action {entry.action}", *facts, f"state {entry.state}")
            self.add("kit", "observe", "entry", instant=entry.instant, path=entry.path(self.name), value=said)
        if self.archived:
            self.add("kit", "observe", "archive", path=f"{self.name}/.hoodie/archived/.commits_.archive.1", value=())
        for path, content in sorted(self.data.items()):
            self.add("kit", "observe", "data-file", path=path, value=len(content))
        rows: list[tuple[str, str]] = []
        error = None
        for own in self.slices().values():
            merged: dict[str, str] = {}
            try:
                for path in sorted(own[0][1], key=lambda path: ".log." in path):
                    merged |= decode_rows(self.data[path])
            except ValueError as unreadable:
                error = str(unreadable)
            rows += merged.items()
        self.add("hudi", "observe", "rows", value=None if error else shown(rows), error=error)
        self.add("kit", "observe", "audit", value="end")

    def commit(self) -> None:
        instant = self.newest = str(int(self.newest) + 1)
        path = f"quiet/00000000-0000-4000-8000-000000000000-0_0-0-0_{instant}.parquet"
        row = f"q{instant}"
        asked = self.add("driver", "invoke", "write", value=(f"{row}=v",))
        kept = self.rows_of_quiet()
        self.data[path] = encode_rows({**kept, row: "v"}, instant)
        self.entries[Entry(instant, "commit", State.COMPLETED)] = (f"wrote {path}",)
        self.add("driver", "ok", "write", caused_by=asked)

    def rows_of_quiet(self) -> dict[str, str]:
        """The rows of the group of earlier commits."""
        own = [path for path in self.data if path.startswith("quiet/")]
        return decode_rows(self.data[max(own)]) if own else {}

    def clean(self) -> None:
        instant = self.newest = str(int(self.newest) + 1)
        old = [path for own in self.slices().values() for _, paths in own[1:] for path in paths]
        for path in old:
            del self.data[path]
        self.entries[Entry(instant, "clean", State.COMPLETED)] = tuple(f"deleted {path}" for path in old)

    def archive(self) -> None:
        first = min(self.pending(), default="9" * 20)
        commits = [entry for entry in self.completed() if entry.instant < first][:-1]
        for entry in commits:
            self.archived += [fact.partition(" ")[2] for fact in self.entries[entry]]
        last = commits[-1].instant if commits else ""
        self.entries = {entry: facts for entry, facts in self.entries.items() if entry.instant > last}

    def judged(self) -> dict[str, str]:
        """What its future breaks, by guarantee."""
        asked = self.add("driver", "invoke", "write", value=self.committed)
        self.read(self.add("driver", "ok", "write", caused_by=asked))
        self.read(self.add("kit", "observe", "future", value=""))
        for step in ("commit", "clean", "archive") * TIMES:
            getattr(self, step)()
            self.read(self.add("kit", "observe", "future", value=step))
        history = History(Header(world="java", storage="local", profile="hudi-spark"), tuple(self.events))
        found = judge(history, frozenset({"G24", "G30", "G31"}))
        assert any(each.judged for each in found), "its future was not judged"
        return {each.guarantee: each.breaches[0].message for each in found if each.breaches}


def tables_of(history: History) -> Iterator[Table]:
    """The tables of a run that readers of completed commits can read at its end."""
    files = {e.path: e.value for e in history.events if e.operation == "file" and isinstance(e.value, bytes) and e.path}
    names = {event.table: event.error for event in history.events if event.operation == "rows" and event.table}
    for name in (each for each in sorted(names) if names[each] is None):
        within = tuple(f"{each}/" for each in names if each.startswith(f"{name}/"))
        own = {path: files[path] for path in files if path.startswith(f"{name}/") and not path.startswith(within)}
        if rows := table_rows(name, own):
            yield Table(name, own, rows)


def chunk(first: int, count: int, seed: int, mutant: str) -> tuple[Counter[str], list[str]]:
    """Runs, tables and breaches of some numbers."""
    system = load_mutant(find_mutant(mutant)) if mutant else reference()
    settings = SearchSettings(places=PLACES, seed=seed, guarantees=None, profile=load_profile("reference"))
    swarm, counts, said = Swarm(system, settings, (make_write_plan,)), Counter[str](), list[str]()
    for number in range(first, first + count):
        history, _ = execute(replace(swarm.plan(number), earlier=None), system)
        counts["runs"] += 1
        (late,) = judge(history, frozenset({"G20"}))
        for table in tables_of(history):
            counts["tables"] += 1
            for guarantee, message in table.judged().items():
                if any(breach.message.startswith(f"{table.name}/") for breach in late.breaches):
                    counts[f"{guarantee} behind a late write"] += 1
                    continue
                counts[guarantee] += 1
                said.append(f"run {number}: {guarantee} {message}")
    return counts, said[:3]


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--mutant", default="", help="the name of a mutant")
    given = parser.parse_args()
    counts = Counter[str]()
    with ProcessPoolExecutor(given.jobs) as pool:
        firsts = range(0, given.runs, CHUNK)
        asked = [pool.submit(chunk, at, min(CHUNK, given.runs - at), given.seed, given.mutant) for at in firsts]
        for each in asked:
            own, said = each.result()
            counts += own
            for line in said:
                print(line, flush=True)
    print(f"{given.mutant or 'the reference'}: {dict(counts)}")


if __name__ == "__main__":
    main()
