"""`marker-sim audit` of large tables: seconds, requests and memory, in one process and on Spark, on files and on S3.

    python benchmarks/audit_scale.py --files 100000 --on local spark local-ro
    python benchmarks/audit_scale.py --files 10000 --on s3

A table of COMMITS commits in 1,000 partitions is made by hand, with five stray files and five named ones removed; each
audit must find these ten and nothing else. `local-ro` audits a read-only bind mount of it, which needs root. S3 is the
kit's front in this process, which counts requests by operation, and whose content must be the same afterwards.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from properties.audit.hand_table import HandTable
from properties.faces.worlds import Interceptor, Recorder, S3Front

COMMITS, PARTITIONS, PLANTED = 50, 1_000, 5


def make(root: Path, files: int) -> None:
    """A table of so many files, with what is planted."""
    table = HandTable(root, 6)
    each = -(-files // COMMITS)
    for number in range(1, COMMITS + 1):
        names = range((number - 1) * each, min(number * each, files))
        table.commit(number, *(table.base(number, f"f{name}", f"p{name % PARTITIONS}") for name in names))
    for name in range(PLANTED):
        (root / table.base(1, f"f{name}", f"p{name % PARTITIONS}")).unlink()
        table.store(table.base(2, f"stray{name}", f"p{name}"))


def audited(address: str, *words: str, environment: dict[str, str] | None = None) -> str:
    """Audit in a process of its own; its figures as a line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "marker_sim", "audit", address, "--json", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    seconds = time.monotonic() - began_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 1:
        raise SystemExit(f"exit code {done.returncode}: {done.stderr[-2000:]}")
    report = json.loads(done.stdout)
    found = Counter(finding["kind"] for finding in report["findings"] if finding["level"] == "damage")
    if found != {"unnamed-data-file": PLANTED, "missing-file": PLANTED}:
        raise SystemExit(f"other findings than what was planted: {found}")
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (
        f"{report['counts']['files']:,} files: {seconds:.1f} s with its start, {report['duration_s']:.1f} s audit,"
        f" {cpu_s:.1f} CPU s, {report['counts']['requests']:,} requests,"
        f" largest process so far {after.ru_maxrss / 1024:.0f} MB"
    )


def read_only(root: Path, scratch: Path) -> str:
    """The audit of a read-only bind mount."""
    place = scratch / "read-only"
    place.mkdir()
    subprocess.run(["mount", "--bind", str(root), str(place)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)
        return audited(str(place))
    finally:
        subprocess.run(["umount", str(place)], check=True)


def on_s3(root: Path) -> str:
    """The audit of the same table in a bucket."""
    with S3Front(Interceptor(Recorder()), bucket="lake") as front:
        front.healed()
        for path in root.rglob("*"):
            if path.is_file():
                front.change(f"t/{path.relative_to(root).as_posix()}", path.read_bytes())
        before, asked = front.objects(), Counter(front.requests)
        keys = {"AWS_ACCESS_KEY_ID": "server-1", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
        line = audited("s3a://lake/t", "--s3-endpoint", front.endpoint, environment=keys)
        if front.objects() != before:
            raise SystemExit("the audit changed the bucket")
        return f"{line}, by operation {dict(Counter(front.requests) - asked)}"


def main() -> None:
    """Parse the command line and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--on", nargs="+", choices=("local", "local-ro", "spark", "s3"), default=["local"])
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="audit-scale-") as temporary:
        root = Path(temporary) / "table"
        make(root, given.files)
        for where in given.on:
            if where == "local":
                line = audited(str(root))
            elif where == "local-ro":
                line = read_only(root, Path(temporary))
            elif where == "spark":
                line = audited(str(root), "--spark-master", given.master)
            else:
                line = on_s3(root)
            print(f"{where:9} {line}", flush=True)


if __name__ == "__main__":
    main()
