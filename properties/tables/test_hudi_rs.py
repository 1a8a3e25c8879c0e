"""Rows by hudi-rs, of a table that is made here with Parquet files and JSON commits of table version 6."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from properties.faces.tables import DirectorySource, ObjectFiles, Unreadable, read_rows
from properties.faces.worlds import Interceptor, Recorder, S3Front

PROPERTIES = """hoodie.table.name=t
hoodie.table.type=COPY_ON_WRITE
hoodie.table.version=6
hoodie.timeline.layout.version=1
hoodie.table.recordkey.fields=key
hoodie.table.partition.fields=part
hoodie.table.precombine.field=ts
hoodie.datasource.write.hive_style_partitioning=false
hoodie.table.base.file.format=PARQUET
"""


def schema() -> dict[str, object]:
    names = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")
    texts = (*names, "_hoodie_file_name", "key", "part", "value")
    columns = [{"name": name, "type": ["null", "string"], "default": None} for name in texts]
    return {"type": "record", "name": "t", "fields": [*columns, {"name": "ts", "type": ["null", "long"]}]}


def write(root: Path, instant: str, rows: dict[str, str], completed: bool = True) -> None:
    """One commit that writes one file group of partition "a" anew."""
    (root / ".hoodie").mkdir(parents=True, exist_ok=True)
    (root / "a").mkdir(exist_ok=True)
    (root / ".hoodie" / "hoodie.properties").write_text(PROPERTIES)
    (root / "a" / ".hoodie_partition_metadata").write_text("partitionDepth=1\n")
    name = f"0f1e2d3c-0_0-1-2_{instant}.parquet"
    columns = {
        "_hoodie_commit_time": [instant for _ in rows],
        "_hoodie_commit_seqno": [f"{instant}_0_{number}" for number in range(len(rows))],
        "_hoodie_record_key": list(rows),
        "_hoodie_partition_path": ["a" for _ in rows],
        "_hoodie_file_name": [name for _ in rows],
        "key": list(rows),
        "part": ["a" for _ in rows],
        "value": list(rows.values()),
        "ts": list(range(len(rows))),
    }
    pq.write_table(pa.table(columns), root / "a" / name)
    stat = {"fileId": "0f1e2d3c-0", "path": f"a/{name}", "prevCommit": "null", "partitionPath": "a", "numWrites": 1}
    record = {
        "partitionToWriteStats": {"a": [stat]},
        "extraMetadata": {"schema": json.dumps(schema())},
        "operationType": "UPSERT",
    }
    (root / ".hoodie" / f"{instant}.commit.requested").touch()
    (root / ".hoodie" / f"{instant}.inflight").touch()
    if completed:
        (root / ".hoodie" / f"{instant}.commit").write_text(json.dumps(record))


def test_completed_commits_are_read_and_others_are_not(tmp_path: Path) -> None:
    write(tmp_path, "20260101000000000", {"k1": "1", "k2": "1"})
    assert read_rows(str(tmp_path), {}) == ("k1=1", "k2=1")
    write(tmp_path, "20260102000000000", {"k1": "2", "k2": "1", "k3": "2"})
    assert read_rows(str(tmp_path), {}) == ("k1=2", "k2=1", "k3=2")
    write(tmp_path, "20260103000000000", {"k1": "3"}, completed=False)
    assert read_rows(str(tmp_path), {}) == ("k1=2", "k2=1", "k3=2")


def test_objects_are_read_as_files_are(tmp_path: Path) -> None:
    boto3 = pytest.importorskip("boto3")
    write(tmp_path / "t", "20260101000000000", {"k1": "1", "k2": "1"})
    with S3Front(Interceptor(Recorder(), lambda _trigger, _call: None), bucket="lake") as front:
        options = {
            "aws_endpoint": front.endpoint,
            "aws_access_key_id": "reader",
            "aws_secret_access_key": "any",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }
        client = boto3.client(
            "s3",
            endpoint_url=front.endpoint,
            aws_access_key_id="writer",
            aws_secret_access_key="any",
            region_name="us-east-1",
        )
        paths = sorted(file.path for file in DirectorySource(tmp_path, 1).tree())
        for path in paths:
            client.put_object(Bucket="lake", Key=path, Body=(tmp_path / path).read_bytes())
        assert sorted(file.path for file in ObjectFiles(front.objects).tree()) == paths
        assert read_rows("s3://lake/t", options) == ("k1=1", "k2=1")


def test_a_key_that_is_there_twice_is_found_twice(tmp_path: Path) -> None:
    write(tmp_path, "20260101000000000", {"k1": "1"})
    twice = pq.read_table(tmp_path / "a" / "0f1e2d3c-0_0-1-2_20260101000000000.parquet", partitioning=None)
    pq.write_table(pa.concat_tables([twice, twice]), tmp_path / "a" / "0f1e2d3c-0_0-1-2_20260101000000000.parquet")
    assert read_rows(str(tmp_path), {}) == ("k1=1", "k1=1")


def test_a_committed_file_that_is_gone_or_torn_is_unreadable(tmp_path: Path) -> None:
    write(tmp_path, "20260101000000000", {"k1": "1"})
    file = tmp_path / "a" / "0f1e2d3c-0_0-1-2_20260101000000000.parquet"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(Unreadable, match=r"\w"):
        read_rows(str(tmp_path), {})


def test_no_table_is_unreadable_and_so_is_one_that_takes_too_long(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"hoodie\.properties"):
        read_rows(str(tmp_path), {})
    write(tmp_path, "20260101000000000", {"k1": "1"})
    with pytest.raises(Unreadable, match="did not end within"):
        read_rows(str(tmp_path), {}, deadline_s=0.001)


def test_log_files_of_a_table_whose_payload_decides_what_a_merge_is_are_no_fault_of_the_table(tmp_path: Path) -> None:
    write(tmp_path, "20260101000000000", {"k1": "1"})
    custom = (
        "hoodie.record.merge.mode=CUSTOM\n"
        "hoodie.compaction.payload.class=org.apache.hudi.common.model.HoodieAvroPayload\n"
    )
    (tmp_path / ".hoodie" / "hoodie.properties").write_text(
        PROPERTIES.replace("COPY_ON_WRITE", "MERGE_ON_READ") + custom
    )
    assert read_rows(str(tmp_path), {}) == ("k1=1",), "base files alone need no merge"
    log, later = ".0f1e2d3c-0_20260101000000000.log.1_0-1-2", "20260102000000000"
    (tmp_path / "a" / log).touch()
    stat = {
        "fileId": "0f1e2d3c-0", "path": f"a/{log}", "prevCommit": "20260101000000000", "partitionPath": "a",
        "baseFile": "0f1e2d3c-0_0-1-2_20260101000000000.parquet", "logFiles": [log], "numWrites": 1,
    }  # fmt: skip
    record = {
        "partitionToWriteStats": {"a": [stat]},
        "extraMetadata": {"schema": json.dumps(schema())},
        "operationType": "UPSERT",
    }
    (tmp_path / ".hoodie" / f"{later}.deltacommit").write_text(json.dumps(record))
    with pytest.raises(Unreadable, match=r"^unsupported: HudiCoreError: A table with a CUSTOM record merge mode"):
        read_rows(str(tmp_path), {})
