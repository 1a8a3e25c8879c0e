"""Real tables of Apache Hudi, healthy and damaged, and what `marker-sim audit` says of them.

    python -m benchmarks.audit_tables make --version 1.0.2 --out DIR [--kinds cow-upserts,mor-logs] [--budget 200]
    python -m benchmarks.audit_tables judge --out DIR [--results FILE]

`make` writes DIR/<version>/<kind>, one Spark session, and goes on where it stopped. DIR/<version>/made.json has each
kind with "" or the error with which it cannot be made.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import audit_kinds
from benchmarks.audit_judged import judge_all
from benchmarks.audit_kind import ALL, FIRST, TableKind, build
from benchmarks.audit_spark import Spark
from properties.audit.damages import DAMAGES

CAUSE_MAX = 300


def main() -> int:
    """Make or judge; 1 when a healthy table was accused or a damage missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    doing = parser.add_subparsers(dest="what", required=True)
    make = doing.add_parser("make")
    make.add_argument("--version", choices=ALL, required=True)
    make.add_argument("--out", type=Path, required=True)
    make.add_argument("--kinds", default="")
    make.add_argument("--again", action="store_true", help="try those again that could not be made")
    make.add_argument("--budget", type=float, default=200.0)
    judging = doing.add_parser("judge")
    judging.add_argument("--out", type=Path, required=True)
    judging.add_argument("--versions", default=",".join(ALL))
    judging.add_argument("--kinds", default="")
    judging.add_argument("--damages", default="all", help="names, all or none")
    judging.add_argument("--times", type=int, default=2, help="tables for each damage")
    judging.add_argument("--results", type=Path, default=Path("audit-tables.jsonl"))
    given = parser.parse_args()
    if given.what == "judge":
        return _judge(given)
    again = made_kinds(given.out.resolve() / given.version) if given.again else {}
    names = given.kinds.split(",") if given.kinds else []
    return _make(given.version, given.out, names, [name for name, error in again.items() if error], given.budget)


def _judge(given: argparse.Namespace) -> int:
    """Run the audit on all that was made; 1 when it was wrong."""
    tables: dict[str, list[Path]] = {}
    for version in given.versions.split(","):
        folder, only = given.out.resolve() / version, given.kinds.split(",") if given.kinds else []
        made = [name for name, error in made_kinds(folder).items() if not error and (not only or name in only)]
        tables[version] = [folder / name for name in made]
    names = {"all": tuple(DAMAGES), "none": ()}.get(given.damages, tuple(given.damages.split(",")))
    with tempfile.TemporaryDirectory(prefix="audit-tables-") as scratch:
        return 1 if judge_all(tables, Path(scratch) / "damaged", names, given.times, given.results) else 0


def _make(version: str, out: Path, names: list[str], again: list[str], budget_s: float) -> int:
    """Tables of a version that were not tried yet, until the time is over; 3 when some are left."""
    began, folder = time.monotonic(), out.resolve() / version
    folder.mkdir(parents=True, exist_ok=True)
    made = made_kinds(folder)
    for name in (*names, *again):
        made.pop(name, None)
    wanted = [
        each
        for each in sorted(
            audit_kinds.KINDS.values(), key=lambda it: FIRST.index(it.name) if it.name in FIRST else len(FIRST)
        )
        if version in each.versions and each.name not in made and (not names or each.name in names)
    ]
    scratch = Path(tempfile.mkdtemp(prefix="audit-tables-"))
    spark = Spark(version, scratch)
    left = len(wanted)
    for each in wanted:
        if time.monotonic() - began > budget_s:
            break
        if each.on and made_kinds(out.resolve() / ALL[0]).get(each.on) != "":
            continue
        left -= 1
        made[each.name] = _one(spark, each, folder, out.resolve() / ALL[0] / each.on if each.on else None)
        (folder / "made.json").write_text(json.dumps(made, indent=1, sort_keys=True), encoding="utf-8")
    spark.stop()
    shutil.rmtree(scratch, ignore_errors=True)
    print(f"{version}: {len(wanted) - left} kinds tried, {sum(map(bool, made.values()))} failed so far, {left} left")
    return 3 if left else 0


def made_kinds(folder: Path) -> dict[str, str]:
    """The kinds of a version's folder that were tried, each with its error, "" for none."""
    path = folder / "made.json"
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return found


def _causes(error: Exception) -> str:
    """What went wrong, the innermost cause first."""
    java, said = getattr(error, "java_exception", None), [f"{type(error).__name__}: {error}"]
    while java is not None:
        said, java = [*said, str(java.toString())], java.getCause()
    return " <- ".join(" ".join(each.split())[:CAUSE_MAX] for each in reversed(said[-3:]))


def _one(spark: Spark, wanted: TableKind, folder: Path, base: Path | None) -> str:
    """Make a table; the error, "" for none. What an error left is renamed away."""
    path, began = folder / wanted.name, time.monotonic()
    try:
        build(spark, wanted, path, base)
    except Exception as error:
        said = _causes(error)
        shutil.rmtree(folder / f".failed-{wanted.name}", ignore_errors=True)
        if path.is_dir():
            path.rename(folder / f".failed-{wanted.name}")
        print(f"{spark.version} {wanted.name}: cannot be made: {said}", flush=True)
        return said
    finally:
        spark.session.catalog.clearCache()
    count = sum(1 for each in path.rglob("*") if each.is_file())
    print(f"{spark.version} {wanted.name}: {count} files in {time.monotonic() - began:.1f} s", flush=True)
    return ""


if __name__ == "__main__":
    sys.exit(main())
