"""The options of commands: each with its form and one line of help. What they accept is checked in request.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marker_sim.judges.promises.profiles import SHIPPED
from marker_sim.targets.table import NAMES, PLANNED

Json = Annotated[bool, typer.Option("--json", help="Print only the content of verdict.json on standard output.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also print the table of guarantees, evidence and whole plans.")
]
Junit = Annotated[
    Path | None, typer.Option("--junit", metavar="FILE", help="Also write the verdict as JUnit XML, for a CI system.")
]
Sarif = Annotated[
    Path | None,
    typer.Option("--sarif", metavar="FILE", help="Also write violations as SARIF 2.1.0, for code scanning."),
]
Github = Annotated[
    bool,
    typer.Option(
        "--github", envvar="GITHUB_ACTIONS", help="Annotations and a summary of the job. Default: on GitHub Actions."
    ),
]
Guarantees = Annotated[str | None, typer.Option(metavar="G1,G3", help="Judge only these, by number or name.")]
Promises = Annotated[
    str | None,
    typer.Option(metavar="FILE", help=f"Which guarantees are promised: {', '.join(SHIPPED)} or a file (TOML, JSON)."),
]
Expect = Annotated[
    str | None, typer.Option(metavar="FILE", help="Known violations, or a verdict.json; only what differs counts.")
]
WriteBaseline = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write what is violated as known, for --expect.")
]
JudgedHistory = Annotated[Path, typer.Argument(metavar="HISTORY", help="A .jsonl, a .parquet or a report directory.")]
Sut = Annotated[
    str,
    typer.Option(metavar="SUT", help=f"{', '.join(NAMES)}."),
]
Against = Annotated[str | None, typer.Option(metavar="SUT", help="Run the same plans on this system and compare.")]
AgainstStart = Annotated[
    str | None, typer.Option(metavar="COMMAND", help="Starts the HTTP server of --against http, as --start does.")
]
Mode = Annotated[str, typer.Option(metavar="MODE", help="direct, timeline or both.")]
Storage = Annotated[
    str | None,
    typer.Option(
        metavar="STORAGE",
        help="sim, local, s3 (simulated: with and without conditional requests) or hdfs; foreign systems: local or s3.",
    ),
]
Budget = Annotated[
    str | None, typer.Option(metavar="TIME", help="How long to search: 1500ms, 40s, 2m, 8h. Default: 40s.")
]
Runs = Annotated[
    str | None,
    typer.Option(metavar="N", help="Number of plans, instead of a time; the result depends on the seed only."),
]
Jobs = Annotated[str | None, typer.Option(metavar="N", help="Worker processes. Default: one per core.")]
StopAtFirst = Annotated[bool, typer.Option("--stop-at-first", help="Stop at the first violation that counts.")]
Seed = Annotated[str | None, typer.Option(metavar="N", help="The same seed gives the same runs.")]
Report = Annotated[str, typer.Option(metavar="DIR", help="Report directory.")]
Start = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Starts a program, or an HTTP server: {port}, {storage}, {threads} and others are filled in.",
    ),
]
Reader = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Prints the names stored in {dir}: a path; on s3 a URI, keys in AWS_*."),
]
Form = Annotated[
    str | None,
    typer.Option(metavar="FORM", help="How requests write the directory: path or file; on s3: s3a, s3 or s3n."),
]
BatchThreads = Annotated[
    str | None, typer.Option(metavar="N", help="Batch threads of the server, also for {threads} in --start.")
]
Writers = Annotated[
    str | None, typer.Option(metavar="N", help="Writers of one table at once, 2 or 3; --sut hudi-java:VERSION alone.")
]
Orders = Annotated[bool, typer.Option("--orders", help="Every order of two writers' steps, with --mode direct.")]
Services = Annotated[bool, typer.Option("--services", help="Table services of --sut hudi-java:VERSION alone.")]
Identity = Annotated[
    bool, typer.Option("--identity", help="The server honours `requestid`: a resend gets the first answer.")
]
S3Endpoint = Annotated[str | None, typer.Option(metavar="URL", help="An S3 endpoint of your own instead of the kit's.")]
S3Bucket = Annotated[str | None, typer.Option(metavar="NAME", help="A bucket there; the kit writes to it.")]
S3AccessKey = Annotated[str | None, typer.Option(metavar="KEY", help="Access key. Default: AWS_ACCESS_KEY_ID.")]
S3SecretKey = Annotated[str | None, typer.Option(metavar="KEY", help="Secret key. Better: set AWS_SECRET_ACCESS_KEY.")]
Table = Annotated[
    str, typer.Argument(metavar="TABLE", help="/dir, file:/dir, s3://bucket/prefix or s3a://bucket/prefix.")
]
AuditReport = Annotated[
    str | None, typer.Option(metavar="DIR", help="Write audit.json, findings.parquet and audit.html there.")
]
AuditJobs = Annotated[str | None, typer.Option(metavar="N", help="Listings and reads at the same time. Default: 16.")]
StuckAfter = Annotated[
    str, typer.Option(metavar="TIME", help="A pending instant without a change for this time is stuck.")
]
SparkMaster = Annotated[
    str | None, typer.Option(metavar="URL", help="Data files are listed and judged by executors of this Spark master.")
]
OtherSut = Annotated[
    str | None,
    typer.Option("--sut", metavar="SUT", help=f"Run a system other than the stored one: {', '.join(PLANNED)}."),
]
Times = Annotated[
    str | None,
    typer.Option(metavar="K", help="Run each plan K times. Default: 1; on servers 10, else in real time 3."),
]
Real = Annotated[
    bool, typer.Option("--real", help="Also run plans that still fail with real processes (seconds each).")
]
Script = Annotated[
    bool, typer.Option("--script", help="Run nothing; write a script that shows the violation without the kit.")
]
Markdown = Annotated[
    bool, typer.Option("--markdown", help="Run nothing; write a text for an issue tracker, with that script.")
]
Curve = Annotated[
    bool,
    typer.Option("--curve", help="Also measure at which event a simulated violation became likely (seconds each)."),
]
HandedOver = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="File for --script or --markdown, a folder for several stories; .html or .json for --curve.",
    ),
]
Stages = Annotated[
    str | None, typer.Option(metavar="NAME:SHARE,NAME:SHARE", help="Any of swarm, exhaustive, real, spark.")
]
ChaosStorage = Annotated[str | None, typer.Option(metavar="STORAGE", help="Of a foreign system: local, s3 or both.")]
