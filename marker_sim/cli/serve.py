"""`marker-sim serve`: checks the options, then runs the reference's timeline server until SIGTERM or SIGINT."""

from __future__ import annotations

import ipaddress
import resource
import sys

from marker_sim.cli.options import check_endpoint
from marker_sim.errors import UsageError
from marker_sim.options import parse_options

PORT_MAX = 65_535
FILES_MAX = 65_536


def serve(
    *,
    bases: list[str],
    host: str,
    port: int,
    batch_threads: str,
    batch_interval_ms: str,
    s3_endpoint: str | None,
    waiting_max: int,
) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code."""
    from marker_sim.serve.server import Settings, run

    if not 0 <= port <= PORT_MAX:
        raise UsageError(f"--port was given {port}; write 0 for any free port, or a number up to {PORT_MAX}")
    if waiting_max < 1:
        raise UsageError(f"--waiting-max was given {waiting_max}; write a whole number of at least 1")
    check_endpoint(s3_endpoint)
    prefix = "hoodie.markers.timeline_server_based.batch"
    options = parse_options({f"{prefix}.num_threads": batch_threads, f"{prefix}.interval_ms": batch_interval_ms})
    if not _is_loopback(host):
        print(
            f"marker-sim: warning: {host} is reached from other hosts, and every client there may create and delete"
            " markers below its base paths",
            file=sys.stderr,
        )
    _allow_connections()
    return run(
        Settings(
            bases=tuple(bases),
            host=host,
            port=port,
            options=options,
            s3_endpoint=s3_endpoint,
            waiting_max=waiting_max,
        )
    )


def _allow_connections() -> None:
    """Raise the limit of open files so that every request that may wait can have a connection, as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, FILES_MAX)), hard))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
