"""The option for an object store other than AWS, in a module of its own: `serve` must not load what campaigns need."""

from __future__ import annotations

from typing import Annotated

import typer

from marker_sim.errors import UsageError

OtherEndpoint = Annotated[str | None, typer.Option(metavar="URL", help="Endpoint of an object store other than AWS.")]


def check_endpoint(url: str | None) -> None:
    """UsageError when the value of `--s3-endpoint` is no URL; a store behind a path is accepted."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError(f"--s3-endpoint was given {url!r}; write a URL such as http://127.0.0.1:9000")
