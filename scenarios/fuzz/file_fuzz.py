"""Damaged marker directories and timelines, and what readers, writers and the server make of them.

A reader may fail with an error of the seams where something cannot be read. It is never short without saying so: the
names that stand on whole lines of readable files are listed, whatever else is there. Nothing outside is touched, a
deletion removes links and not what they lead to, and a create is stored or not answered.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from marker_sim import timeline
from marker_sim.names import MarkerDirectory, stored_names
from marker_sim.options import MarkerOptions
from marker_sim.seams import NoAnswer, SeamError, StorageError
from properties.faces.markers import Context, DirectMarkers, Rejected
from properties.faces.storages import LocalStorage
from properties.faces.worlds import DirectoryReader, Recorder, files_below
from properties.faces.writer import Conflict, WriteClient
from scenarios.fuzz import rules
from scenarios.fuzz.client import converse
from scenarios.fuzz.file_inputs import DIRECTORIES, JSONS, TIMELINES, Damage, apply
from scenarios.fuzz.ground import facts_of
from scenarios.fuzz.http_inputs import API, INSTANTS, Ending, Input, Part, request
from scenarios.fuzz.known import KNOWN_FILES, KNOWN_TIMELINES
from scenarios.fuzz.ledger import Broken
from scenarios.fuzz.plain import everything, in_the_way, read_plainly, regular_files
from scenarios.fuzz.still import StillRuntime, within

BOUND_S = 10.0
ROUND_TRIALS = 100
INSTANT = INSTANTS[0]
_REFUSALS = (StorageError, Rejected, ValueError)


@dataclass(slots=True)
class FileTally:
    """What was tried and how each reader ended, by kind of damage and by call."""

    inputs: Counter[str] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    trials: int = 0
    touched: int = 0


class Wireless:
    """The Wire of a world without servers."""

    def call(self, server: str, request: object, deadline_ms: int) -> object:
        """No process to end."""
        raise NoAnswer(server)


class FileFuzzer:
    """Trials below <root>/base, beside <root>/outside. port: of a server of that base, None for none."""

    def __init__(self, root: Path, port: int | None = None, bound_s: float = BOUND_S, shrink: bool = True) -> None:
        self.statistics = FileTally()
        self._phases = (Phase.generate, Phase.shrink) if shrink else (Phase.generate,)
        self._base, self._out = root.resolve() / "base", root.resolve() / "outside"
        self._port = port
        self._bound_s = bound_s
        self._storage = LocalStorage(self._base)
        self._runtime = StillRuntime()
        self._count = 0
        self._broken = False
        self._base.mkdir(parents=True, exist_ok=True)
        (self._out / ".hoodie" / ".temp" / INSTANT).mkdir(parents=True, exist_ok=True)
        (self._out / ".hoodie" / ".temp" / INSTANT / "MARKERS0").write_bytes(b"canary.marker.CREATE\n")
        (self._out / "names").write_bytes(b"outside.marker.CREATE\n")
        (self._out / "precious").write_bytes(b"canary")
        self._before = facts_of(self._out)

    def run_known(self) -> None:
        """Try every known damage and every odd JSON text."""
        for damages in KNOWN_FILES.values():
            self.directory_trial(damages)
        for damages in KNOWN_TIMELINES.values():
            self.timeline_trial(damages)
        for data in JSONS:
            self.codec_trial(data)

    def run(self, inputs: int, start: int) -> None:
        """Try drawn damages until there were so many; Broken carries the smallest that broke."""
        number = 0
        while self.statistics.inputs.total() < inputs:
            self._round(start * 1_000_003 + number, inputs)
            number += 1

    def directory_trial(self, damages: Sequence[Damage]) -> None:
        """Damage a marker directory, then read it, write to it and delete it, here and through the server."""
        table = self._table()
        directory = self._base / table / ".hoodie" / ".temp" / INSTANT
        self._count_in(damages)
        apply(damages, directory, self._out)
        try:
            store = self._store(table)
            self._read(store, directory)
            self._create(store, directory)
            if self._port is not None:
                self._serve(directory)
            else:
                ended = within(self._bound_s, "delete", store.delete)
                self._typed("delete", ended)
                self._deleted(directory, ended)
            self._outside()
        except Broken as broken:
            raise Broken(f"{broken}\ndamages, as a row of scenarios/fuzz/known.py: {list(damages)!r}") from broken
        finally:
            shutil.rmtree(self._base / table, ignore_errors=True)

    def timeline_trial(self, damages: Sequence[Damage]) -> None:
        """Damage the timeline of a table with one commit, then begin a write, which recovers what it can."""
        table = self._table()
        hoodie = self._base / table / ".hoodie"
        committed = f"{table}/p/f_0-0-0_20250101000000000.parquet"
        stat = timeline.WriteStat("p", "f", committed.removeprefix(f"{table}/"), 1, "")
        commit = f"{table}/.hoodie/20250101000000000.commit"
        self._storage.put(committed, b"PAR1")
        self._storage.put(commit, timeline.encode_commit((stat,), {}))
        kept = {path: (self._base / path).read_bytes() for path in (committed, commit)}
        self._count_in(damages)
        apply(damages, hoodie, self._out)
        try:
            client = WriteClient(table, self._context(table), _Markers(self._store_at))
            ended = within(self._bound_s, "begin", client.begin)
            self._typed("begin", ended, (SeamError, ValueError, Conflict))
            for path, data in kept.items():
                if not (self._base / path).is_file() or (self._base / path).read_bytes() != data:
                    raise Broken(f"{path}, which is committed, was lost or changed by a recovery")
            self._outside()
        except Broken as broken:
            raise Broken(f"{broken}\ndamages, as a row of scenarios/fuzz/known.py: {list(damages)!r}") from broken
        finally:
            shutil.rmtree(self._base / table, ignore_errors=True)

    def codec_trial(self, data: bytes) -> None:
        """Pure functions over bytes end in a value or in the ValueError that they document."""
        self.statistics.inputs["codec"] += 1
        for decode in (timeline.decode_commit, timeline.decode_rollback, timeline.write_ordinal):
            try:
                decode(data)
            except ValueError:
                continue
            except Exception as error:
                raise Broken(f"{decode.__name__} of {data[:200]!r} raised {error!r}"[:600]) from error
        for name in (data.decode("utf-8", "surrogateescape"), f".hoodie/{data.decode('latin-1')}.commit"):
            timeline.parse_entry(name)
            timeline.parse_data_file(name)

    def _round(self, number: int, inputs: int) -> None:
        trials: st.SearchStrategy[tuple[Callable[..., None], object]] = st.one_of(
            st.tuples(st.just(self.directory_trial), DIRECTORIES),
            st.tuples(st.just(self.directory_trial), DIRECTORIES),
            st.tuples(st.just(self.timeline_trial), TIMELINES),
            st.tuples(st.just(self.codec_trial), st.one_of(st.sampled_from(JSONS), st.binary(max_size=40))),
        )

        @seed(number)
        @settings(
            max_examples=ROUND_TRIALS,
            database=None,
            deadline=None,
            phases=self._phases,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
            report_multiple_bugs=False,
        )
        @given(trials)
        def judged(drawn: tuple[Callable[..., None], object]) -> None:
            if self._broken or self.statistics.inputs.total() < inputs:
                self.statistics.trials += 1
                try:
                    drawn[0](drawn[1])
                except Broken:
                    self._broken = True  # Run again, whatever the limit, or it would look flaky.
                    raise

        try:
            judged()
        except BaseExceptionGroup as several:
            raise Broken(f"not each time, so perhaps a race: {several.exceptions[0]}") from None

    def _read(self, store: DirectMarkers, directory: Path) -> None:
        good, possible, unreadable = read_plainly(directory)
        for call in (store.list_all, store.list_data_paths, store.list_log_paths, store.exists):
            name = call.__name__
            ended: object = within(self._bound_s, name, call)
            self._typed(name, ended)
            if isinstance(ended, Exception) and not unreadable:
                raise Broken(f"{name} fails although every file can be read: {ended!r}")
            if name == "list_all" and isinstance(ended, tuple):
                self._compare("list_all", frozenset(ended), good, possible)
        files = {f"d/{path}": data for path, data in regular_files(directory).items()}
        self._compare("stored_names", stored_names("d", files), good, possible)
        self._look(directory, good)

    def _look(self, directory: Path, good: frozenset[str]) -> None:
        """The kit's own look at a directory of a foreign server; it follows links to files, as Hadoop does."""
        place = MarkerDirectory(directory.relative_to(self._base).parts[0], INSTANT)
        recorder = Recorder()
        reader = DirectoryReader(recorder, lambda prefix: files_below(self._base, prefix), in_order=True, names=None)
        ended = within(self._bound_s, "look_at_dead", lambda: reader.look_at_dead(place))
        self._typed("look_at_dead", ended)
        seen = {e.path: e.value for e in recorder.events if e.path and isinstance(e.value, bytes)}
        if good - stored_names(place.path, seen):
            raise Broken(f"the kit's reader is short of {sorted(good - stored_names(place.path, seen))[:3]}")

    def _compare(self, who: str, names: frozenset[str], good: frozenset[str], possible: frozenset[str]) -> None:
        if good - names:
            raise Broken(f"{who} is short of {sorted(good - names)[:3]} and does not say so")
        if names - possible:
            raise Broken(f"{who} names {sorted(names - possible)[:3]!r}, which no line and no file says")

    def _create(self, store: DirectMarkers, directory: Path) -> None:
        # A partition called MARKERS0 would keep the server's first file from being written.
        odd = ("MARKERS0/new.marker.CREATE",) if self._port is None else ()
        for name in ("fresh/new.marker.CREATE", "p/new.marker.CREATE", *odd):
            ended = within(self._bound_s, "create", lambda name=name: store.create(name))  # type: ignore[misc]
            self._typed("create", ended)
            if not isinstance(ended, Exception) and not (directory / name).is_file():
                raise Broken(f"a create of {name!r} was answered {ended} and is not stored")

    def _serve(self, directory: Path) -> None:
        """The same through the server: list, create, list, delete."""
        good, possible, unreadable = read_plainly(directory)
        listed = self._ask("/all", directory)
        if isinstance(listed, list):
            self._compare("/all", frozenset(listed), good, possible)
        elif not unreadable:
            raise Broken(f"/all fails although every file can be read: {listed!r}")
        name = "through/the-server.marker.CREATE"
        created = self._ask("/create", directory, name)
        if created is True or created is False:
            now, *_ = read_plainly(directory)
            if (good | {name}) - now:
                raise Broken(
                    f"after a create was answered {created}, {sorted((good | {name}) - now)[:3]} is not stored"
                )
        elif not unreadable and not in_the_way(directory):
            raise Broken(f"a create fails although every file can be read and written: {created!r}")
        self._deleted(directory, self._ask("/dir/delete", directory))

    def _ask(self, route: str, directory: Path, name: str = "") -> object:
        """The value that a server answers, or its status and words as text."""
        assert self._port is not None
        query = f"markerdirpath={quote(str(directory))}" + (f"&markername={quote(name)}" if name else "")
        part = Part(rules.METHODS[route], f"{API.decode()}{route}?{query}".encode())
        heard, _ = converse(self._port, Input("", (request(part),), Ending.WAIT, (part,)), self._bound_s)
        if not heard.answers:
            raise Broken(f"{route} of a damaged directory was not answered: {heard.end}")
        answer = heard.answers[0]
        self.statistics.calls[f"server {route}", str(answer.status)] += 1
        value: object = json.loads(answer.body) if answer.status == 200 else f"{answer.status} {answer.body[:300]!r}"
        return value

    def _deleted(self, directory: Path, answered: object) -> None:
        if answered is not True and answered is not False:
            return
        left = [path for path in everything(directory) if path.is_symlink() or not path.is_dir()]
        if left and not directory.is_symlink():
            raise Broken(f"the deletion was answered {answered} and left {left[:3]}")

    def _typed(self, what: str, ended: object, refusals: tuple[type[Exception], ...] = _REFUSALS) -> None:
        self.statistics.calls[what, type(ended).__name__ if isinstance(ended, Exception) else "ok"] += 1
        if isinstance(ended, Exception) and not isinstance(ended, refusals):
            raise Broken(f"{what} crashed: {ended!r}"[:600])

    def _outside(self) -> None:
        now = facts_of(self._out)
        if now != self._before:
            self.statistics.touched += 1
            changed = sorted(
                path for path in now.keys() | self._before.keys() if now.get(path) != self._before.get(path)
            )
            raise Broken(f"touched outside: {changed}")

    def _store(self, table: str) -> DirectMarkers:
        directory = f"{table}/.hoodie/.temp/{INSTANT}"
        return self._store_at(directory)

    def _store_at(self, directory: str) -> DirectMarkers:
        return DirectMarkers(self._context(directory))

    def _context(self, directory: str) -> Context:
        wire: object = Wireless()
        return Context(
            storage=self._storage,
            runtime=self._runtime,
            wire=wire,  # type: ignore[arg-type]
            directory=directory,
            options=MarkerOptions(),
        )

    def _table(self) -> str:
        self._count += 1
        return f"table{self._count}"

    def _count_in(self, damages: Sequence[Damage]) -> None:
        self.statistics.inputs.update(damage.kind for damage in damages)


class _Markers:
    """Direct markers for a write client."""

    def __init__(self, store_at: Callable[[str], DirectMarkers]) -> None:
        self._store_at = store_at

    def store(self, directory: str) -> DirectMarkers:
        return self._store_at(directory)

    def stored(self, directory: str) -> tuple[str, ...]:
        return self._store_at(directory).list_all()
