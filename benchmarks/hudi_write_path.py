"""The write path of released Hudi under aimed kills: version, table type, mode and storage, and what came of each.

    PYTHONPATH=. python benchmarks/hudi_write_path.py --versions 1.0.2 1.2.0 --storage local --budget 330 --seed 7

The same rounds as `marker-sim verify --sut hudi-spark:VERSION`, shown a row for each combination: tables, writes,
drivers killed and where, and the breaches by guarantee, those in brackets that the profile does not hold against Hudi.
One message of each kind follows. With --keep DIR the history of every round is stored there.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from marker_sim.campaign.engine import run_campaign
from marker_sim.history import History, write_jsonl
from marker_sim.judges import judge
from marker_sim.judges.promises.profiles import Profile, load_profile
from marker_sim.targets.hudi import VERSIONS
from marker_sim.targets.table import parse_target
from marker_sim.targets.target import CampaignRequest

_NUMBERS = re.compile(r"\d{6,}|[0-9a-f]{8}-[0-9a-f-]{27}|\d+")


@dataclass(slots=True)
class Row:
    """What came of one combination."""

    tables: int = 0
    writes: int = 0
    completed: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    breaches: Counter[str] = field(default_factory=Counter)


def add(row: Row, history: History, profile: Profile, told: dict[str, str]) -> None:
    """Count a round. told: the first message of each kind of breach."""
    header = history.header
    row.tables += 1
    for event in history.events:
        if event.kind == "invoke" and event.operation == "write":
            row.writes += 1
        elif event.kind == "ok" and event.operation == "write":
            row.completed += 1
        elif event.kind == "fault" and event.operation == "kill":
            row.kills.update([event.error or "kill"] if event.value is None else [])
        elif event.kind == "fault" and event.value != "end":
            row.others[event.operation] += 1
    for finding in judge(history):
        for breach in finding.breaches:
            promised = profile.promise(finding.guarantee, header.mode, header.storage, breach.under).promised
            name = finding.guarantee if promised else f"({finding.guarantee})"
            row.breaches[name] += 1
            kind = f"{name} {_NUMBERS.sub('#', breach.message)[:90]}"
            told.setdefault(kind, f"{name} seed {header.seed} under {breach.under}: {breach.message[:400]}")


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--versions", nargs="+", default=list(VERSIONS), choices=VERSIONS)
    parser.add_argument("--storage", nargs="+", default=["local", "s3"], choices=("local", "s3"))
    parser.add_argument("--mode", nargs="+", default=["direct", "timeline"], choices=("direct", "timeline"))
    parser.add_argument("--budget", type=float, default=330.0)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    profile = load_profile("hudi-spark")
    for version in given.versions:
        for storage in given.storage:
            rows: dict[tuple[str, str], Row] = {}
            told: dict[str, str] = {}

            def on_round(
                history: History,
                rows: dict[tuple[str, str], Row] = rows,
                told: dict[str, str] = told,
                name: str = f"{version}-{storage}",
            ) -> None:
                header = history.header
                add(rows.setdefault((header.options["table_type"], header.mode), Row()), history, profile, told)
                if given.keep is not None:
                    given.keep.mkdir(parents=True, exist_ok=True)
                    write_jsonl(history, given.keep / f"{name}-{header.seed}.jsonl")

            with tempfile.TemporaryDirectory() as report:
                request = CampaignRequest(
                    target=parse_target(f"hudi-spark:{version}"), modes=tuple(given.mode), storages=(storage,),
                    budget_s=given.budget, seed=given.seed, report=Path(report), profile=profile,
                )  # fmt: skip
                campaign = run_campaign(request, lambda _: None, on_run=on_round)
            for (kind, mode), row in sorted(rows.items()):
                print(
                    f"{version} {kind} {mode} {storage}: {row.tables} tables, {row.writes} writes, {row.completed} ok,"
                    f" {row.kills.total()} drivers killed {dict(sorted(row.kills.items()))}, other faults"
                    f" {dict(sorted(row.others.items()))}, breaches {dict(sorted(row.breaches.items())) or 'none'}"
                )
            for text in (
                *(f"   {text}" for text in told.values()),
                *(f"   coverage goal missed: {n}" for n in campaign.not_reached),
            ):
                print(text, flush=True)
            print(
                f"   {campaign.duration_s:.0f} s{'; trouble: ' + campaign.trouble if campaign.trouble else ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()
