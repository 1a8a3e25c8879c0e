"""Files at rest: below a directory, below a prefix of a bucket, or objects in this process. Nothing here can write.

Paths are relative to the directory or prefix. A bucket is asked by ListObjectsV2 and GetObject alone. Listings run in
`jobs` threads: of a directory one folder each, of a bucket one range of keys each. `requests` counts them and reads.
HarnessError when the storage fails; a file that is gone meanwhile reads as None.
"""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from marker_sim.errors import HarnessError, UsageError
from marker_sim.surroundings.requirements import importing

ACCEPTED = "a directory, file:/path, s3://bucket/prefix or s3a://bucket/prefix"
_OBJECT_SCHEMES = ("s3://", "s3a://", "s3n://")
_RANGES_PER_JOB = 2


class StoredFile(NamedTuple):
    """One file. modified_s: since 1970."""

    path: str
    size: int
    modified_s: float


class Files(Protocol):
    """Files at rest, by path."""

    @abstractmethod
    def tree(self, path: str = "") -> list[StoredFile]:
        """The files below a folder."""

    @abstractmethod
    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        """The content of a file or a part of it; None when it is not there."""


class TableSource(Files):
    """The files of a table as an audit reads them, by folders and in parallel. jobs: how many calls at a time."""

    def __init__(self, jobs: int) -> None:
        self._pool = ThreadPoolExecutor(jobs)
        self.requests = 0

    @abstractmethod
    def level(self, path: str) -> tuple[list[StoredFile], list[str]]:
        """The files and the folders in a folder; none when it is not there."""

    def each(self, call: Callable[[str], Any], paths: Iterable[str]) -> list[Any]:
        """Call for each path, some at the same time; the results in order."""
        return list(self._pool.map(call, paths))

    def close(self) -> None:
        """End its threads and connections."""
        self._pool.shutdown(cancel_futures=True)


def open_source(table: str, endpoint: str | None, jobs: int) -> TableSource:
    """The files of a table; UsageError when the address is not understood or there is no directory."""
    if table.startswith(_OBJECT_SCHEMES):
        bucket, _, prefix = table.partition("://")[2].partition("/")
        if not bucket:
            raise UsageError(f"{table} has no bucket; write s3://bucket/prefix")
        return BucketSource(bucket, prefix.strip("/"), endpoint, jobs)
    path = local_path(table)
    if path is None:
        raise UsageError(
            f"{table} is not understood; give {ACCEPTED}, and copy a table of another storage to one of these first,"
            " with `hadoop distcp`, `gcloud storage rsync` or `azcopy`, while no writer is at work"
        )
    if not path.is_dir():
        raise UsageError(f"{table} is no directory; give {ACCEPTED}")
    return DirectorySource(path, jobs)


def local_path(table: str) -> Path | None:
    """The directory that an address names on this host, None for every other address."""
    if table.startswith("file:"):
        return Path("/" + table.removeprefix("file:").lstrip("/"))
    return None if "://" in table else Path(table)


class DirectorySource(TableSource):
    """The files below a directory. Links are followed, each directory is read once."""

    def __init__(self, root: Path, jobs: int) -> None:
        super().__init__(jobs)
        self._root = os.fspath(root)

    def level(self, path: str) -> tuple[list[StoredFile], list[str]]:
        """The files and the folders in a folder."""
        files, folders = self._scan(path)
        return files, [folder for folder, _ in folders]

    def tree(self, path: str = "") -> list[StoredFile]:
        """The files below a folder, level by level."""
        found: list[StoredFile] = []
        seen: set[tuple[int, int]] = set()
        level = [path]
        while level:
            folders: list[str] = []
            for files, below in self._pool.map(self._scan, level):
                found += files
                for folder, identity in below:
                    if identity not in seen:
                        seen.add(identity)
                        folders.append(folder)
            level = folders
        return found

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        """The content of a file or a part of it."""
        self.requests += 1
        try:
            with open(os.path.join(self._root, path), "rb") as file:
                file.seek(start)
                return file.read(-1 if length is None else length)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _failed(f"{path} cannot be read", error) from error

    def _scan(self, path: str) -> tuple[list[StoredFile], list[tuple[str, tuple[int, int]]]]:
        self.requests += 1
        files, folders = [], []
        start = f"{path}/" if path else ""
        try:
            with os.scandir(os.path.join(self._root, path)) as entries:
                for entry in entries:
                    try:
                        stat = entry.stat()
                    except FileNotFoundError:
                        continue  # Deleted since the listing, or a broken link.
                    if entry.is_dir():
                        folders.append((start + entry.name, (stat.st_dev, stat.st_ino)))
                    else:
                        files.append(StoredFile(start + entry.name, stat.st_size, stat.st_mtime))
        except (FileNotFoundError, NotADirectoryError):
            return [], []
        except OSError as error:
            raise _failed(f"{path or self._root} cannot be listed", error) from error
        return files, folders


def _failed(what: str, error: OSError) -> UsageError | HarnessError:
    """A file without the right to read it is wrong usage."""
    if isinstance(error, PermissionError):
        return UsageError(f"{what}: {error.strerror}; audit it as a user who may read the whole table")
    return HarnessError(f"{what}: {error.strerror or error}")


class BucketSource(TableSource):
    """The objects below a prefix. Keys that end in "/" stand for directories and are left out."""

    def __init__(self, bucket: str, prefix: str, endpoint: str | None, jobs: int) -> None:
        super().__init__(jobs)
        with importing("a table on S3", "audit"):
            import boto3.session
            import botocore.config
            import botocore.exceptions
        self._refused = botocore.exceptions.ClientError
        self._failures = (botocore.exceptions.ClientError, botocore.exceptions.BotoCoreError, OSError)
        config = botocore.config.Config(
            retries={"total_max_attempts": 5, "mode": "standard"},
            max_pool_connections=jobs,
            s3={"addressing_style": "path"} if endpoint else None,
            proxies={} if endpoint else None,
        )
        session = boto3.session.Session()
        region = session.region_name or "us-east-1"
        self._client = session.client("s3", endpoint_url=endpoint, region_name=region, config=config)
        self._client.meta.events.register("before-call.s3", self._count)
        self._bucket = bucket
        self._prefix = f"{prefix}/" if prefix else ""
        self._jobs = jobs
        self._counting = threading.Lock()

    def level(self, path: str) -> tuple[list[StoredFile], list[str]]:
        """The objects and the folders in a folder."""
        files, folders = self._pages(f"{self._prefix}{path}/" if path else self._prefix, Delimiter="/")
        return files, [folder[len(self._prefix) : -1] for folder in folders]

    def tree(self, path: str = "") -> list[StoredFile]:
        """The objects below a folder: ranges of keys, found from the folders in it, are listed at the same time."""
        whole = f"{self._prefix}{path}/" if path else self._prefix
        files, folders = self._pages(whole, Delimiter="/")
        while len(folders) == 1 and not files:
            whole = folders[0]
            files, folders = self._pages(whole, Delimiter="/")
        many = max(1, -(-len(folders) // (self._jobs * _RANGES_PER_JOB)))
        parts = [folders[at : at + many] for at in range(0, len(folders), many)]
        for found in self._pool.map(self._part, parts, [whole] * len(parts)):
            files += found
        return files

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        """The content of an object or a part of it."""
        span: dict[str, str] = {}
        if length is not None:
            span["Range"] = f"bytes={start}-{start + length - 1}"
        try:
            answer = self._client.get_object(Bucket=self._bucket, Key=self._prefix + path, **span)
            content: bytes = answer["Body"].read()
        except self._failures as error:
            answered = error.response.get("ResponseMetadata", {}) if isinstance(error, self._refused) else {}
            if answered.get("HTTPStatusCode") == 404:
                return None
            if answered.get("HTTPStatusCode") == 416:
                return b""
            raise self._failed(path, error) from error
        return content

    def close(self) -> None:
        """End its threads and connections."""
        super().close()
        self._client.close()

    def _part(self, folders: list[str], whole: str) -> list[StoredFile]:
        """The objects of neighbouring folders."""
        if len(folders) == 1:
            return self._pages(folders[0])[0]
        start = len(self._prefix)
        found = self._pages(whole, last=folders[-1], StartAfter=folders[0])[0]
        return [file for file in found if "/" in file.path[len(whole) - start :]]  # The others were listed before.

    def _pages(self, prefix: str, last: str = "", **how: str) -> tuple[list[StoredFile], list[str]]:
        """The objects and folders below a prefix, page by page, up to those of the folder `last`."""
        files: list[StoredFile] = []
        folders: list[str] = []
        end = last.encode() + b"\xff"
        paginator = self._client.get_paginator("list_objects_v2")
        try:
            for page in paginator.paginate(Bucket=self._bucket, Prefix=prefix, **how):
                for each in page.get("Contents", ()):
                    key = each["Key"]
                    if last and key.encode() > end:
                        return files, folders
                    if not key.endswith("/"):
                        path = key[len(self._prefix) :]
                        files.append(StoredFile(path, each["Size"], each["LastModified"].timestamp()))
                folders += [each["Prefix"] for each in page.get("CommonPrefixes", ())]
        except self._failures as error:
            raise self._failed(prefix, error) from error
        return files, folders

    def _count(self, **_: object) -> None:
        with self._counting:
            self.requests += 1

    def _failed(self, path: str, error: Exception) -> HarnessError:
        return HarnessError(f"s3://{self._bucket}/{path}: {error}")


class ObjectFiles:
    """Objects that this process keeps itself, as the S3 front does. objects: by key, of the keys that start with a
    prefix; it must not wait for a fault. `tree` takes a snapshot, of which `read` reads.
    """

    def __init__(self, objects: Callable[[str], Mapping[str, bytes]]) -> None:
        self._objects = objects
        self._snapshot: Mapping[str, bytes] = {}

    def tree(self, path: str = "") -> list[StoredFile]:
        """The objects below a folder, as of now."""
        self._snapshot = self._objects(f"{path}/" if path else "")
        return [StoredFile(key, len(data), 0.0) for key, data in self._snapshot.items() if not key.endswith("/")]

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        """The content of an object of the snapshot or a part of it; None when it is none."""
        content = self._snapshot.get(path)
        return None if content is None else content[start : None if length is None else start + length]
