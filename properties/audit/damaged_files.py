"""Damages of data files, of the table and of its metadata table: orphans, and files that are gone or short."""

from __future__ import annotations

import shutil
from pathlib import Path

from properties.audit.damage import damage
from properties.audit.disk import BaseName, Disk, LogName, Unfit


@damage("orphan-of-attempt", 1, "unnamed-data-file")
def orphan_of_attempt(table: Path) -> str:
    """A second attempt of a task finished after the commit had chosen the first one's file."""
    disk = Disk(table)
    path = disk.newest_bases()[0]
    name = BaseName.of(path)
    task, stage, attempt = name.token.split("-")
    copy = path.with_name(name.with_token(f"{task}-{stage}-{int(attempt) + 5}"))
    shutil.copy(path, copy)
    return f"{disk.relative(copy)} beside {path.name}"


@damage("empty-orphan", 1, "unnamed-data-file")
def empty_orphan(table: Path) -> str:
    """An attempt that was killed when it had only made its file."""
    disk = Disk(table)
    path = disk.newest_bases()[-1]
    name = BaseName.of(path)
    task, stage, attempt = name.token.split("-")
    copy = path.with_name(name.with_token(f"{task}-{int(stage) + 1}-{int(attempt) + 1}"))
    copy.touch()
    return f"{disk.relative(copy)}, empty"


@damage("orphan-new-group", 1, "unnamed-data-file")
def orphan_new_group(table: Path) -> str:
    """Such a file in a file group of its own, so that readers without a timeline would find its rows twice."""
    disk = Disk(table)
    path = disk.newest_bases()[0]
    name = BaseName.of(path)
    copy = path.with_name(f"0b5e7c1a-7d3a-4b0e-9f27-3c1d7a5be0aa-0_{name.token}_{name.instant}{path.suffix}")
    shutil.copy(path, copy)
    return f"{disk.relative(copy)}"


@damage("instant-unknown", 2, "unnamed-data-file")
def instant_unknown(table: Path) -> str:
    """The entries of a dead instant are gone and its files are not: a rollback that found no marker of them."""
    disk = Disk(table)
    path = disk.newest_bases()[0]
    name = BaseName.of(path)
    instant = disk.free_instant()
    copy = path.with_name(f"{name.file_id}_7-777-7777_{instant}{path.suffix}")
    shutil.copy(path, copy)
    return f"{disk.relative(copy)} of an instant that is not in the timeline"


@damage("base-missing", 3, "missing-file")
def base_missing(table: Path) -> str:
    """A base file of the newest commit is gone."""
    disk = Disk(table)
    path = disk.newest_bases()[0]
    disk.remove(path)
    return f"{disk.relative(path)} removed"


@damage("partition-missing", 3, "missing-file")
def partition_missing(table: Path) -> str:
    """A whole partition is gone, as after a hasty rm -r."""
    disk = Disk(table)
    folder = disk.newest_bases()[0].parent
    if folder == disk.table:
        raise Unfit("the table has no partitions")
    shutil.rmtree(folder)
    return f"{disk.relative(folder)}/ removed"


@damage("base-of-archived-missing", 3, "missing-file")
def base_of_archived_missing(table: Path) -> str:
    """A file is gone that is the newest of its group and was named by a commit that is archived by now."""
    disk = Disk(table)
    if not disk.has_archive():
        raise Unfit("the table has no archive")
    first = min(disk.instants())
    found = [path for path in disk.bases() if BaseName.of(path).instant < first and disk.is_newest_of_group(path)]
    if not found:
        raise Unfit("no newest base file is of an archived commit")
    disk.remove(found[0])
    return f"{disk.relative(found[0])} of an archived commit removed"


@damage("base-short", 4, "short-file")
def base_short(table: Path) -> str:
    """A base file of the newest commit lost its second half."""
    disk = Disk(table)
    path = disk.newest_bases()[0]
    disk.cut(path, path.stat().st_size // 2)
    return f"{disk.relative(path)} cut to half"


@damage("base-short-by-one", 4, "short-file")
def base_short_by_one(table: Path) -> str:
    """The last byte of a base file is lost."""
    disk = Disk(table)
    path = disk.newest_bases()[-1]
    disk.cut(path, path.stat().st_size - 1)
    return f"{disk.relative(path)} is a byte shorter"


@damage("base-empty", 4, "short-file")
def base_empty(table: Path) -> str:
    """A base file is empty, as after a power cut."""
    disk = Disk(table)
    path = disk.newest_bases()[0]
    disk.cut(path, 0)
    return f"{disk.relative(path)} is empty"


@damage("log-missing", 12, "missing-file")
def log_missing(table: Path) -> str:
    """A log file of the newest delta commit is gone."""
    disk = Disk(table)
    path = disk.newest_logs()[0]
    disk.remove(path)
    return f"{disk.relative(path)} removed"


@damage("log-short", 12, "short-file")
def log_short(table: Path) -> str:
    """A log file of the newest delta commit lost its second half."""
    disk = Disk(table)
    path = disk.newest_logs()[-1]
    disk.cut(path, path.stat().st_size // 2)
    return f"{disk.relative(path)} cut to half"


@damage("log-empty", 12, "short-file")
def log_empty(table: Path) -> str:
    """A log file of the newest delta commit is empty, which stops every later write by way of the metadata table."""
    disk = Disk(table)
    path = disk.newest_logs()[0]
    disk.cut(path, 0)
    return f"{disk.relative(path)} is empty"


@damage("orphan-log", 1, "unnamed-data-file")
def orphan_log(table: Path) -> str:
    """A second attempt of an append finished after the commit."""
    disk = Disk(table)
    path = disk.newest_logs()[0]
    name = LogName.of(path)
    task, stage, attempt = name.token.split("-")
    copy = path.with_name(name.with_token(f"{task}-{stage}-{int(attempt) + 5}"))
    shutil.copy(path, copy)
    return f"{disk.relative(copy)} beside {path.name}"


@damage("service-file-missing", 3, "missing-file")
def service_file_missing(table: Path) -> str:
    """A base file that compaction or clustering made is gone, and with it the rows of all that it replaced."""
    disk = Disk(table)
    for path in reversed(disk.bases()):
        instant = BaseName.of(path).instant
        entries = {each[2:] for each in disk.entries() if each.instant == instant}
        planned = any(action in ("compaction", "clustering", "replacecommit") for action, _ in entries)
        if planned and any(state == "completed" for _, state in entries) and disk.is_newest_of_group(path):
            disk.remove(path)
            return f"{disk.relative(path)} of a table service removed"
    raise Unfit("no newest base file was made by a table service")


@damage("metadata-base-missing", 3, "missing-file")
def metadata_base_missing(table: Path) -> str:
    """A base file of the metadata table is gone."""
    disk = _metadata(table)
    found = [path for path in disk.bases() if disk.is_newest_of_group(path)]
    if not found:
        raise Unfit("the metadata table has no base file")
    disk.remove(found[0])
    return f"{disk.relative(found[0])} of the metadata table removed"


@damage("metadata-log-missing", 12, "missing-file")
def metadata_log_missing(table: Path) -> str:
    """A log file of the metadata table is gone: readers see other files than there are."""
    disk = _metadata(table)
    path = disk.newest_logs()[-1]
    disk.remove(path)
    return f"{disk.relative(path)} of the metadata table removed"


@damage("metadata-commit-empty", 9, "empty-completed-instant")
def metadata_commit_empty(table: Path) -> str:
    """A driver died between making a completed entry of the metadata table and writing to it."""
    disk = _metadata(table)
    write = disk.newest_write()
    disk.cut(write.path, 0)
    return f"{write.path.name} of the metadata table is empty"


def _metadata(table: Path) -> Disk:
    folder = table / ".hoodie" / "metadata"
    if not (folder / ".hoodie" / "hoodie.properties").is_file():
        raise Unfit("the table has no metadata table")
    return Disk(folder)
