"""The options of commands: each with its form and one line of help. What they accept is checked in request.py."""

from __future__ import annotations

from typing import Annotated

import typer

from marker_sim.judges.promises.profiles import SHIPPED
from marker_sim.loading import NAMES

Json = Annotated[bool, typer.Option("--json", help="Print only the content of verdict.json on standard output.")]
Guarantees = Annotated[str | None, typer.Option(metavar="G1,G3", help="Judge only these, by number or name.")]
Promises = Annotated[
    str | None,
    typer.Option(metavar="FILE", help=f"What is promised: {', '.join(SHIPPED)} or a file (TOML, JSON)."),
]
Expect = Annotated[
    str | None, typer.Option(metavar="FILE", help="Violations that are known; only differences from them count.")
]
Sut = Annotated[
    str,
    typer.Option(metavar="SUT", help=f"{', '.join(NAMES)}."),
]
Mode = Annotated[str, typer.Option(metavar="MODE", help="direct, timeline or both.")]
Storage = Annotated[
    str | None, typer.Option(metavar="STORAGE", help="sim, local, s3 or hdfs; foreign systems: local or s3.")
]
Budget = Annotated[
    str | None, typer.Option(metavar="TIME", help="How long to search: 40s, 2m, 8h, 1500ms; 40s if left out.")
]
Runs = Annotated[
    str | None,
    typer.Option(metavar="N", help="How many plans, instead of how long; the result is a function of the seed."),
]
Jobs = Annotated[str | None, typer.Option(metavar="N", help="Worker processes, one a core if left out.")]
StopAtFirst = Annotated[bool, typer.Option("--stop-at-first", help="Stop at the first violation that counts.")]
Seed = Annotated[str | None, typer.Option(metavar="N", help="The same seed makes the same runs.")]
Report = Annotated[str, typer.Option(metavar="DIR", help="Where the report goes.")]
Start = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Starts an HTTP server; {port}, {storage}, {threads}, ... are replaced."),
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
    str | None, typer.Option(metavar="N", help="Batch threads of the server; {threads}, where --start has it, says N.")
]
Identity = Annotated[
    bool, typer.Option("--identity", help="The server honours `requestid`: a resend hears what the first heard.")
]
S3Endpoint = Annotated[
    str | None, typer.Option(metavar="URL", help="An S3 of your own instead of the one that the kit starts.")
]
S3Bucket = Annotated[str | None, typer.Option(metavar="NAME", help="Its bucket, which the kit writes to.")]
S3AccessKey = Annotated[str | None, typer.Option(metavar="KEY", help="Who signs; AWS_ACCESS_KEY_ID when left out.")]
S3SecretKey = Annotated[str | None, typer.Option(metavar="KEY", help="Its secret; better set AWS_SECRET_ACCESS_KEY.")]
