"""What Hudi's repair tool would delete from sound and damaged tables of real versions, beside `marker-sim audit`.

    PYTHONPATH=. python benchmarks/published_repairs.py [--version 1.2.0] [--only NAME ...]

The tool is HoodieRepairTool of hudi-utilities (`--mode dry_run`), whose finding is RepairUtils; the procedure
repair_orphan_files of later versions calls it as well. It is called without Spark (PublishedRepair.java). The tables
are those of properties/audit/tables: sound, with a leftover (a base file with the name of an instant that is nowhere),
and without the newest base file that a completed commit names. Needs javac.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pyspark

from marker_sim.surroundings.requirements import find_java
from marker_sim.tables.parts import parse_properties
from marker_sim.tables.sources import DirectorySource
from marker_sim.tables.timeline_reader import TimelineReader
from marker_sim.targets.hudi import bundle
from properties.audit.real_tables import names, unpack

BASE = re.compile(r"[0-9a-f-]{36}-\d+_\d+-\d+-\d+_(\d{17})\.parquet$")


def leave(table: Path) -> str:
    """Add a leftover; where, "" when the table has no base file to copy."""
    for path in sorted(table.rglob("*.parquet")):
        if ".hoodie" not in path.parts and (match := BASE.match(path.name)):
            name = "00000000-0000-4000-8000-000000000000-0_0-9-9_" + str(int(match[1]) + 1) + ".parquet"
            shutil.copy(path, path.with_name(name))
            return path.with_name(name).relative_to(table).as_posix()
    return ""


def lose(table: Path) -> str:
    """Delete the newest base file; which, "" for none."""
    bases = [path for path in table.rglob("*.parquet") if ".hoodie" not in path.parts and BASE.match(path.name)]
    if not bases:
        return ""
    newest = max(bases, key=lambda path: path.name.rpartition("_")[2])
    newest.unlink()
    return newest.relative_to(table).as_posix()


def needed(table: Path, paths: list[str]) -> int:
    """How many files are in the newest slice of a group, by a completed commit that names them."""
    properties = parse_properties((table / ".hoodie" / "hoodie.properties").read_bytes())
    timeline = TimelineReader(DirectorySource(table, 1), properties).read()
    claims = (timeline.claims[path].file for path in paths if path in timeline.claims)
    return sum(file is not None and timeline.is_needed(file) for file in claims)


def audited(table: Path) -> set[str]:
    """Kinds of damage that an audit finds."""
    done = subprocess.run(["marker-sim", "audit", str(table), "--json"], check=False, capture_output=True, text=True)
    found = json.loads(done.stdout)["findings"]
    return {each["kind"] for each in found if each["level"] == "damage"}


def main() -> None:
    """Make, ask and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", default="1.2.0")
    parser.add_argument("--only", nargs="*", default=names())
    given = parser.parse_args()
    (jar,) = bundle(given.version).find(print)
    path = f"{jar}:{Path(pyspark.__file__).parent / 'jars'}/*"
    with tempfile.TemporaryDirectory() as scratch:
        tables, added = [], {}
        for name in given.only:
            for damage, make in (("sound", lambda table: ""), ("leftover", leave), ("file lost", lose)):
                table = unpack(name, Path(scratch) / damage.replace(" ", "-"))
                added[table] = (name, damage, make(table))
                if damage == "sound" or added[table][2]:
                    tables.append(table)
        source = Path(__file__).with_name("PublishedRepair.java")
        subprocess.run(["javac", "-nowarn", "-cp", path, "-d", scratch, str(source)], check=True)
        done = subprocess.run(
            [find_java(), "-cp", f"{scratch}:{path}", "PublishedRepair", *map(str, tables)],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        said = {Path(line.split()[1]): line for line in done.stdout.splitlines() if line[:6] in ("FOUND ", "ERROR ")}
        print("| table | damage | the tool would delete | the damage is found | audit |\n|---|---|---|---|---|")
        for table in tables:
            name, damage, what = added[table]
            words = said.get(table, "ERROR - no answer").split(" ", 3)
            found = words[3].split(",") if words[0] == "FOUND" and len(words) > 3 and words[3] else []
            wrong = [each for each in found if each != what]
            told = f"{len(found)} of {words[2]} files, {needed(table, wrong)} of which readers need"
            told = " ".join(words) if words[0] == "ERROR" else told
            kinds = " ".join(sorted(audited(table)))
            print(f"| {name} | {damage} | {told} | {what in found if what else '-'} | {kinds} |", flush=True)


if __name__ == "__main__":
    main()
