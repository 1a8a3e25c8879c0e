"""A table in a bucket is audited as the same table in a directory is, by requests that only read."""

from __future__ import annotations

from pathlib import Path
from wsgiref.types import WSGIEnvironment

import pytest

from marker_sim.errors import HarnessError, UsageError
from properties.audit.hand_table import HandTable, audit_at
from properties.faces.tables import BucketSource, DirectorySource, TableReport, TableSource
from properties.faces.worlds import Response, S3Front
from properties.real.fronts import Stage, fronted


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name for the front, and none of this host's settings."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "server-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_PROFILE", raising=False)


def _upload(stage: Stage, root: Path, prefix: str) -> None:
    for path in root.rglob("*"):
        if path.is_file():
            stage.front.change(f"{prefix}/{path.relative_to(root).as_posix()}", path.read_bytes())


def _damaged(root: Path) -> HandTable:
    table = HandTable(root, 8)
    table.commit(1, *(table.base(1, f"f{n}", f"p{n % 7}") for n in range(30)), "top_0-1-2_20260101120100000.parquet")
    table.commit(2, table.base(2))
    table.store(table.base(2, "f9"), table.base(1, "größe", "a b=1%2F"))
    (table.root / table.base(1, "f3", "p3")).unlink()
    table.begin(3)
    table.markers(3, {"MARKERS.type": b"TIMELINE_SERVER_BASED", "MARKERS0": b"p/torn"})
    return table


def _told(report: TableReport) -> list[tuple[object, ...]]:
    """All findings without their sentences, which say how old a file is."""
    return [(f.kind, f.level, f.instant, f.path, f.evidence) for f in report.findings]


@pytest.mark.usefixtures("keys")
def test_the_same_findings_by_get_and_list_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = _damaged(tmp_path / "t")
    methods = set()
    with fronted() as stage:
        answer = type(stage.front).__call__

        def watched(front: S3Front, environ: WSGIEnvironment) -> Response:
            methods.add(environ["REQUEST_METHOD"])
            return answer(front, environ)

        monkeypatch.setattr(type(stage.front), "__call__", watched)
        _upload(stage, table.root, "lake/t")
        before = stage.front.objects()
        report = audit_at("s3a://lake/lake/t/", stage.front.endpoint)
        assert stage.front.objects() == before
        requests, effects = stage.front.requests, stage.effects()
    assert methods == {"GET"}
    assert set(requests) <= {"list", "get"} and effects == []
    assert sum(requests.values()) == report.counts["requests"]
    assert _told(report) == _told(audit_at(str(table.root)))
    assert {f.kind for f in report.findings} >= {"unnamed-data-file", "missing-file", "marker-file-unreadable"}


@pytest.mark.usefixtures("keys")
def test_a_bucket_is_listed_as_its_directory_whatever_the_names(tmp_path: Path) -> None:
    names = [f"p{n:03}/x{n}/f" for n in range(50)] + ["a", "p01/z", "ä/ü", "\U0001f600/f", "z", ".h/f", "p0 1/f"]
    for name in names:
        path = tmp_path / "t" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(name.encode())
    with fronted() as stage:
        _upload(stage, tmp_path / "t", "t")
        for jobs in (1, 3, 64):
            bucket: TableSource = BucketSource("lake", "t", stage.front.endpoint, jobs)
            listed = [(file.path, file.size) for file in bucket.tree()]
            assert len(set(listed)) == len(listed)
            assert sorted(listed) == sorted((f.path, f.size) for f in DirectorySource(tmp_path / "t", 2).tree())
            assert bucket.read("a", 0, 1) == b"a" and bucket.read("no") is None and bucket.read("z") == b"z"


@pytest.mark.usefixtures("keys")
def test_what_cannot_be_reached_or_is_no_table_is_said_in_a_sentence() -> None:
    with fronted() as stage, pytest.raises(UsageError, match="no Hudi table"):
        audit_at("s3://lake/nothing", stage.front.endpoint)
    with fronted() as stage, pytest.raises(HarnessError, match="NoSuchBucket"):
        audit_at("s3://other/t", stage.front.endpoint)
    with pytest.raises(UsageError, match="write s3://bucket/prefix"):
        audit_at("s3://")
