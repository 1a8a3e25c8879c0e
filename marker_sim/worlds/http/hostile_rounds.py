"""Rounds of hostile input: names and directories that must be refused, or kept byte for byte, also after a restart.

A name of `REFUSED` has control characters, is no text, or leaves its directory: it must get a clear error (G12). One of
`KEPT` is odd and no more: a server may refuse it, and what it accepts it must store and list as it is (G1 to G4, G11).
The same goes for marker directories: some must be refused, some are other spellings of one directory. Every answer is
looked at while the server lives, after a kill and a restart, and once more after creates that rewrite the files.

Never sent: an empty directory, one outside of what the kit made for the round, a relative one, which a server would
look for wherever the kit was started, and any deletion but those of the load.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from marker_sim.names import TYPE_FILE, MarkerDirectory, marker_file
from marker_sim.worlds.http.http_client import READ_ONLY
from marker_sim.worlds.http.round_stage import RoundStage

HOSTILE = "hostile"
AT_A_TIME = 8
STEM = "f0_0-0-0_001.parquet.marker.CREATE"
PLAIN = tuple(f"dt=1/plain{number}_0-0-0_001.parquet.marker.CREATE" for number in range(4))
_CONTROLS = "".join(map(chr, (*range(32), 0x7F, 0x85)))
_NO_TEXT = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82")
REFUSED: tuple[str | bytes, ...] = (
    "",
    *(f"dt=1/a{ord(letter):02x}{letter}b{ord(letter):02x}/{STEM}" for letter in _CONTROLS),
    f"dt=1/a0d0a\r\nb0d0a/{STEM}",
    *(b"dt=1/a%d%bb/%b" % (number, piece, STEM.encode()) for number, piece in enumerate(_NO_TEXT)),
    "../../../../escaped.parquet.marker.CREATE",
    "dt=1/../../escaped.parquet.marker.CREATE",
    f"/{STEM}",
)
KEPT = (
    f"dt=1/a\u2028b/{STEM}",
    f"dt=1/a\u2029b/{STEM}",
    f"\ufeffdt=1/{STEM}",
    TYPE_FILE,
    marker_file(0),
    f"{marker_file(0)}/{STEM}",
    f"dt=1//{STEM}",
    "no-suffix.parquet",
    f"long/{'x' * 240}/{STEM}",
    f"long/{'y' * 300}/{STEM}",
    f"{'/'.join(['d' * 200] * 12)}/{STEM}",
    f"{'/'.join(['e' * 200] * 24)}/{STEM}",
)


def hostile(stage: RoundStage, until: float) -> None:
    """What is hostile, what is odd, other spellings; then a restart, and creates that rewrite the files."""
    injector = stage.injector
    _create(stage, PLAIN[:2])
    _ask_what_is_hostile(stage)
    _create(stage, KEPT)
    for number, address in enumerate(spellings(stage.world.address(stage.spelled))):
        stage.ask_once("create", stage.spelled, PLAIN[number], address)
    _read(stage)
    injector.kill(injector.first, stage.places)
    injector.restart()
    _read(stage)
    _create(stage, (*KEPT, *PLAIN))
    stage.ask_once("create", stage.spelled, PLAIN[3])
    _read(stage)
    injector.note("names and directories that are hostile or odd, looked at after a restart", len(REFUSED) + len(KEPT))


def _create(stage: RoundStage, names: tuple[str, ...]) -> None:
    """Ask for names all at once, so that a few batches take them."""
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(partial(stage.ask_once, "create", stage.hostile), names))


def _ask_what_is_hostile(stage: RoundStage) -> None:
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for start in range(0, len(REFUSED), AT_A_TIME):
            asked = REFUSED[start : start + AT_A_TIME]
            ended = list(pool.map(partial(stage.ask_once, "hostile", stage.hostile), asked))
            if any(each is not None and (each.error or "").startswith("no answer") for each in ended):
                return  # It is accused of that; to wait for each of the others would take the rest of the budget.
    for target, address in malformed(stage.hostile, stage.world.address):
        stage.ask_once("hostile", stage.hostile, PLAIN[0], address, target)


def malformed(place: MarkerDirectory, address: Callable[[MarkerDirectory], str]) -> tuple[tuple[str, str], ...]:
    """Directories that are none of markers: what each would change, by storage path, and how a request writes it.

    All lie below the tables of the round, whose files are removed with it.
    """
    whole = address(place)
    table = whole.removesuffix(place.path.removeprefix(place.table))
    aside = (f"loose/{place.instant}", f".hoodie/{place.instant}")
    climbing = f"{table}/.hoodie/.temp/../../../aside/.hoodie/.temp/{place.instant}"
    beside = place.table.rpartition("/")[0]
    return (
        *((f"{place.table}/{path}", f"{table}/{path}") for path in aside),
        (f"{beside}/aside/.hoodie/.temp/{place.instant}", climbing),
    )


def spellings(address: str) -> tuple[str, ...]:
    """One directory as it is, with a slash at the end and, on a file system, with a doubled one within.

    On an object store a doubled slash names other objects.
    """
    doubled = () if "://" in address else (address.replace("/.hoodie/", "/.hoodie//"),)
    return (address, f"{address}/", *doubled)


def _read(stage: RoundStage) -> None:
    for place in (stage.hostile, stage.spelled):
        for operation in READ_ONLY:
            stage.ask_once(operation, place, "")
