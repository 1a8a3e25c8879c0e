"""`marker-sim serve`: checks the options, then runs the reference's timeline server until SIGTERM or SIGINT."""

from __future__ import annotations

import ipaddress
import resource
from typing import Annotated

import typer

from marker_sim.cli.output import say
from marker_sim.errors import UsageError
from marker_sim.options import parse_options

PORT_MAX = 65_535
FILES_MAX = 65_536
# Not among the other options: a server that is started again after each death must not load what campaigns need.
OtherEndpoint = Annotated[str | None, typer.Option(metavar="URL", help="Endpoint of an object store other than AWS.")]


def serve(
    base: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH_OR_URI", help="A table or a directory of tables: /dir, file:/dir, s3://bucket/k."),
    ] = None,
    host: Annotated[str, typer.Option(metavar="HOST", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", help="0 for any free port.")] = 0,
    batch_threads: Annotated[str, typer.Option(metavar="N", help="Marker files of a directory.")] = "20",
    batch_interval_ms: Annotated[str, typer.Option(metavar="MS", help="Time between batches.")] = "50",
    s3_endpoint: OtherEndpoint = None,
    waiting_max: Annotated[int, typer.Option(metavar="N", help="Requests that may wait; others get 503.")] = 10_000,
    fsync: Annotated[
        bool,
        typer.Option(
            "--fsync", help="Sync local files and directories before each answer, so that it survives a loss of power."
        ),
    ] = False,
) -> int:
    """Serve markers over HTTP as Hudi's timeline server does."""
    from marker_sim.serve.server import Settings, run

    if not 0 <= port <= PORT_MAX:
        raise UsageError(f"--port was given {port}; write 0 for any free port, or a number up to {PORT_MAX}")
    if waiting_max < 1:
        raise UsageError(f"--waiting-max was given {waiting_max}; write a whole number of at least 1")
    check_endpoint(s3_endpoint)
    prefix = "hoodie.markers.timeline_server_based.batch"
    options = parse_options({f"{prefix}.num_threads": batch_threads, f"{prefix}.interval_ms": batch_interval_ms})
    if not _is_loopback(host):
        say(
            f"warning: {host} is reached from other hosts, and every client there may create and delete markers below"
            " its base paths"
        )
    _allow_connections()
    return run(
        Settings(
            bases=tuple(base or ()),
            host=host,
            port=port,
            options=options,
            s3_endpoint=s3_endpoint,
            waiting_max=waiting_max,
            fsync=fsync,
        )
    )


def check_endpoint(url: str | None) -> None:
    """UsageError when the value of `--s3-endpoint` is no URL; a store behind a path is accepted."""
    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError(f"--s3-endpoint was given {url!r}; write a URL such as http://127.0.0.1:9000")


def _allow_connections() -> None:
    """Raise the limit of open files so that every request that may wait can have a connection, as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, FILES_MAX)), hard))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
