"""Prints the names stored in a marker directory on S3, as the reader command of a user would.

python stored_names.py s3a://BUCKET/PREFIX        endpoint and keys from the environment
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # It is started as a program, wherever that is done.

from scenarios.servers.marker_files import S3Files
from scenarios.servers.s3_objects import S3Objects


def main() -> None:
    """One name a line."""
    bucket, _, prefix = sys.argv[1].partition("://")[2].partition("/")
    files = S3Files(S3Objects(os.environ["AWS_ENDPOINT_URL"], bucket), prefix)
    files.refresh()
    for data in files.contents.values():
        sys.stdout.write(data[: data.rfind(b"\n") + 1].decode("utf-8"))


if __name__ == "__main__":
    main()
