"""What the S3 front promises without faults: each effect once, whole, in order, before its reply; nothing left over."""

from __future__ import annotations

import http.client
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from marker_sim.errors import HarnessError
from marker_sim.faults import FaultKind
from properties.real.fronts import Stage, aimed, client, fronted, refusal

NAMES = (
    *("r0/t0/.hoodie/.temp/001/MARKERS0", "dt=2020-01-01/a%2Fb", "größe=12/été", "a+b c", "x?y#z", "/lead", "a//b"),
    *("a/../b", "./a", "dir/", "tab\tx", "line\nfeed", "semi;colon&amp", "%", "%25", "*'()!~", "日本/𝄞"),
)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with fronted() as one:
        yield one


@pytest.fixture
def s3(stage: Stage) -> Any:
    return client(stage.front.endpoint)


def test_keys_are_stored_and_recorded_byte_for_byte(stage: Stage, s3: Any) -> None:
    for name in NAMES:
        s3.put_object(Bucket="lake", Key=name, Body=name.encode())
        assert stage.effects()[-1] == ("put", name, name.encode())
        assert s3.get_object(Bucket="lake", Key=name)["Body"].read() == name.encode()
    assert stage.front.objects() == {name: name.encode() for name in sorted(NAMES)}
    assert [entry["Key"] for entry in s3.list_objects_v2(Bucket="lake")["Contents"]] == sorted(NAMES)
    for name in NAMES:
        s3.delete_object(Bucket="lake", Key=name)
        assert stage.effects()[-1] == ("delete", name, None)
    assert stage.front.objects() == {}
    assert len(stage.effects()) == 2 * len(NAMES)


def test_a_change_behind_everybodys_back_is_seen_and_told_to_nobody(stage: Stage, s3: Any) -> None:
    for name in NAMES:
        stage.front.change(name, b"old")
        before = s3.get_object(Bucket="lake", Key=name)["ETag"]
        stage.front.change(name, b"new")
        now = s3.get_object(Bucket="lake", Key=name)
        assert now["Body"].read() == b"new" and now["ETag"] != before
        stage.front.change(name, None)
    assert stage.front.objects() == {}
    assert stage.effects() == []


def test_a_process_is_its_access_key_and_has_a_role(stage: Stage, s3: Any) -> None:
    stage.front.roles["driver-7"] = "driver"
    s3.put_object(Bucket="lake", Key="a", Body=b"1")
    client(stage.front.endpoint, "driver-7").put_object(Bucket="lake", Key="b", Body=b"2")
    address = s3.generate_presigned_url("put_object", Params={"Bucket": "lake", "Key": "c"})
    assert _request(stage, "PUT", address.removeprefix(stage.front.endpoint), b"3") == 200
    assert _request(stage, "PUT", "/lake/d", b"4") == 200
    assert [(event.process, event.role, event.path, event.value) for event in stage.events("effect")] == [
        ("server-1", "timeline-server", "a", b"1"),
        ("driver-7", "driver", "b", b"2"),
        ("anonymous", "timeline-server", "c", b"3"),
        ("anonymous", "timeline-server", "d", b"4"),
    ]


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        (
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
            b"5\r\nhello\r\n6\r\n world\r\n0\r\nx-amz-checksum-crc32:DUoRhQ==\r\n\r\n",
        ),
        (
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            b"5;chunk-signature=00\r\nhello\r\n6;chunk-signature=00\r\n world\r\n0;chunk-signature=00\r\n\r\n",
        ),
    ],
)
@pytest.mark.parametrize("transfer", ["length", "chunked"])
def test_chunks_with_signatures_and_trailers_are_recorded_as_what_they_carry(
    stage: Stage, kind: str, sent: bytes, transfer: str
) -> None:
    headers = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=s3a/20200101/us-east-1/s3/aws4_request, Signature=0",
        "Content-Encoding": "aws-chunked",
        "x-amz-content-sha256": kind,
        "x-amz-decoded-content-length": "11",
    }
    body = [sent[:7], sent[7:]] if transfer == "chunked" else sent
    assert _request(stage, "PUT", "/lake/chunks", body, headers) == 200
    assert stage.effects() == [("put", "chunks", b"hello world")]
    assert stage.events("effect")[0].process == "s3a"


def test_bodies_of_boto3_with_its_own_checksums_arrive_whole(stage: Stage, s3: Any) -> None:
    class Unseekable:
        def __init__(self) -> None:
            self.left = [b"a" * 1000, b"b" * 1000]

        def read(self, size: int = -1) -> bytes:
            return self.left.pop(0) if self.left else b""

    for algorithm in ("CRC32", "SHA256"):
        s3.put_object(Bucket="lake", Key=algorithm, Body=b"x" * 100_000, ChecksumAlgorithm=algorithm)
        assert s3.get_object(Bucket="lake", Key=algorithm)["Body"].read() == b"x" * 100_000
    s3.upload_fileobj(Unseekable(), "lake", "stream")
    assert [value for _, _, value in stage.effects()] == [b"x" * 100_000] * 2 + [b"a" * 1000 + b"b" * 1000]


def test_a_conditional_put_that_failed_has_no_effect(stage: Stage, s3: Any) -> None:
    etag = s3.put_object(Bucket="lake", Key="a", Body=b"1", IfNoneMatch="*")["ETag"]
    assert refusal(s3.put_object, Bucket="lake", Key="a", Body=b"2", IfNoneMatch="*") == 412
    assert refusal(s3.put_object, Bucket="lake", Key="missing", Body=b"2", IfMatch=etag) == 404
    s3.put_object(Bucket="lake", Key="a", Body=b"3", IfMatch=etag)
    assert refusal(s3.put_object, Bucket="lake", Key="a", Body=b"4", IfMatch=etag) == 412
    s3.delete_object(Bucket="lake", Key="missing")
    assert stage.effects() == [("put", "a", b"1"), ("put", "a", b"3")]


@pytest.fixture
def threads_that_switch_everywhere() -> Iterator[None]:
    """Between almost any two instructions; moto alone loses updates then."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("threads_that_switch_everywhere")
def test_conditional_puts_are_atomic(stage: Stage, s3: Any) -> None:
    """Four writers count one object up by compare-and-swap: no number is lost and none comes twice."""
    s3.put_object(Bucket="lake", Key="n", Body=b"0")

    def count_up(writer: int) -> int:
        won = 0
        for _ in range(200):
            read = s3.get_object(Bucket="lake", Key="n")
            number = int(read["Body"].read())
            if number >= 40:
                break
            try:
                s3.put_object(Bucket="lake", Key="n", Body=str(number + 1).encode(), IfMatch=read["ETag"])
            except s3.exceptions.ClientError as error:
                assert error.response["ResponseMetadata"]["HTTPStatusCode"] == 412
            else:
                won += 1
                assert ("put", "n", str(number + 1).encode()) in stage.effects(), "recorded before its reply"
        return won

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(count_up, range(4))) == 40
    assert [int(value) for _, _, value in stage.effects()] == list(range(41))


def test_copies_uploads_in_parts_and_deletions_of_many_are_effects_of_their_keys(stage: Stage, s3: Any) -> None:
    s3.put_object(Bucket="lake", Key="a", Body=b"1")
    s3.copy_object(Bucket="lake", Key="dir/b&c", CopySource={"Bucket": "lake", "Key": "a"})
    upload = s3.create_multipart_upload(Bucket="lake", Key="parts")["UploadId"]
    part = s3.upload_part(Bucket="lake", Key="parts", UploadId=upload, PartNumber=1, Body=b"whole")["ETag"]
    assert len(stage.effects()) == 2, "parts are no object yet"
    parts = {"Parts": [{"PartNumber": 1, "ETag": part}]}
    s3.complete_multipart_upload(Bucket="lake", Key="parts", UploadId=upload, MultipartUpload=parts)
    keys = [{"Key": key} for key in ("a", "missing", "dir/b&c", "a", "parts")]
    deleted = s3.delete_objects(Bucket="lake", Delete={"Objects": keys})["Deleted"]
    assert {entry["Key"] for entry in deleted} == {"a", "missing", "dir/b&c", "parts"}
    assert stage.effects() == [
        ("put", "a", b"1"),
        ("put", "dir/b&c", b"1"),
        ("put", "parts", b"whole"),
        ("delete", "a", None),
        ("delete", "dir/b&c", None),
        ("delete", "parts", None),
    ]
    requests = stage.front.requests
    assert (requests["put"], requests["delete"], requests["other"]) == (3, 1, 2)


_TAGS = b"<Tagging><TagSet><Tag><Key>a</Key><Value/></Tag></TagSet></Tagging>"
_PARTS = b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part></CompleteMultipartUpload>"


@pytest.mark.parametrize("key", ["there", "missing"])
def test_what_the_store_does_not_understand_is_refused_and_changes_nothing(stage: Stage, s3: Any, key: str) -> None:
    s3.put_object(Bucket="lake", Key="there", Body=b"1")
    forms = (
        *("", "torrent", "select", "attributes", "restore", "legal-hold", "retention", "acl", "tagging", "uploads"),
        *("partNumber=1", "uploadId=zz", "uploadId=", "append", "renameObject", "delete", "acl&tagging"),
    )
    understood = {("PUT", ""), ("DELETE", ""), ("PUT", "acl"), ("PUT", "tagging")}
    understood |= {("POST", "uploadId=zz"), ("DELETE", "uploadId=zz")}
    for form in forms:
        for method in ("PUT", "POST", "DELETE", "PATCH", "OPTIONS"):
            if (method, form) not in understood:
                assert _request(stage, method, f"/lake/{key}?{form}", b"2") == 501, (method, form)
    for method, form, body, status in (
        ("PUT", "uploadId=zz&partNumber=1", b"2", 404),
        ("PUT", "uploadId=zz&partNumber=one", b"2", 400),
        ("GET", "partNumber=one", b"", 400),
        ("DELETE", "uploadId=zz", b"", 404),
        ("POST", "uploadId=zz", _PARTS, 404),
        ("POST", "uploadId=zz", b"", 400),
        ("POST", "uploadId=zz", b"<CompleteMultipartUpload/>", 400),
        ("PUT", "tagging", b"", 400),
        ("PUT", "tagging", b"<Tagging/>", 400),
        ("PUT", "acl", b"<AccessControlPolicy/>", 400),
    ):
        assert _request(stage, method, f"/lake/{key}?{form}", body) == status, (method, form, body)
    assert stage.effects() == [("put", "there", b"1")]
    assert stage.front.objects() == {"there": b"1"}


def test_tags_and_grants_are_kept_and_are_no_effects(stage: Stage, s3: Any) -> None:
    s3.put_object(Bucket="lake", Key="a", Body=b"1")
    assert _request(stage, "PUT", "/lake/a?tagging", _TAGS) == 200
    assert s3.get_object_tagging(Bucket="lake", Key="a")["TagSet"] == [{"Key": "a", "Value": ""}]
    s3.put_object_acl(Bucket="lake", Key="a", ACL="public-read")
    assert len(s3.get_object_acl(Bucket="lake", Key="a")["Grants"]) == 2
    assert stage.effects() == [("put", "a", b"1")]


def test_an_upload_belongs_to_its_key_and_may_be_completed_again(stage: Stage, s3: Any) -> None:
    upload = s3.create_multipart_upload(Bucket="lake", Key="mine")["UploadId"]
    part = s3.upload_part(Bucket="lake", Key="mine", UploadId=upload, PartNumber=1, Body=b"whole")["ETag"]
    ask = {"Bucket": "lake", "UploadId": upload, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": part}]}}
    assert refusal(s3.complete_multipart_upload, Key="other", **ask) == 404
    assert refusal(s3.abort_multipart_upload, Bucket="lake", Key="other", UploadId=upload) == 404
    assert stage.effects() == []
    for _ in range(2):
        s3.complete_multipart_upload(Key="mine", **ask)
    assert stage.effects() == [("put", "mine", b"whole")]
    gone = s3.create_multipart_upload(Bucket="lake", Key="mine")["UploadId"]
    s3.abort_multipart_upload(Bucket="lake", Key="mine", UploadId=gone)
    assert refusal(s3.complete_multipart_upload, Key="mine", **{**ask, "UploadId": gone}) == 404


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no xml",
        b"<Delete/>",
        b"<Other><Object><Key>a</Key></Object></Other>",
        b"<Delete><Object><Key/></Object></Delete>",
        b"<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
        b"<Delete><Object><Key>a</Key></Object><Object/></Delete>",
        b"<s:Delete xmlns:s='u'><s:Object><s:Key>a</s:Key></s:Object></s:Delete>",
        b"<!DOCTYPE d [<!ENTITY e 'a'>]><Delete><Object><Key>&e;</Key></Object></Delete>",
    ],
)
def test_a_body_that_is_no_deletion_is_refused_and_deletes_nothing(stage: Stage, s3: Any, body: bytes) -> None:
    s3.put_object(Bucket="lake", Key="a", Body=b"1")
    assert _request(stage, "POST", "/lake?delete", body) == 400
    assert stage.front.objects() == {"a": b"1"}
    assert stage.effects() == [("put", "a", b"1")]


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16"])
def test_a_deletion_in_any_encoding_is_an_effect_of_its_key(stage: Stage, s3: Any, encoding: str) -> None:
    s3.put_object(Bucket="lake", Key="é", Body=b"1")
    text = f"<?xml version='1.0' encoding='{encoding}'?><Delete><Object><Key>é</Key></Object></Delete>"
    assert _request(stage, "POST", "/lake?delete", text.encode(encoding)) == 200
    assert stage.effects()[-1] == ("delete", "é", None)
    assert stage.front.objects() == {}


def test_the_bucket_itself_cannot_be_changed_and_others_are_not_there(stage: Stage, s3: Any) -> None:
    s3.put_object(Bucket="lake", Key="a", Body=b"1")
    s3.create_bucket(Bucket="lake")
    s3.head_bucket(Bucket="lake")
    assert [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]] == ["lake"]
    assert refusal(s3.delete_bucket, Bucket="lake") == 501
    versioning = {"Status": "Enabled"}
    assert refusal(s3.put_bucket_versioning, Bucket="lake", VersioningConfiguration=versioning) == 501
    assert refusal(s3.put_object, Bucket="pond", Key="a", Body=b"1") == 404
    assert refusal(s3.create_bucket, Bucket="pond") == 404
    assert refusal(s3.get_object, Bucket="lake", Key="b") == 404
    assert stage.front.objects() == {"a": b"1"}


def test_fronts_of_one_process_do_not_meet(stage: Stage, s3: Any) -> None:
    with fronted() as other:
        s3.put_object(Bucket="lake", Key="mine", Body=b"1")
        client(other.front.endpoint).put_object(Bucket="lake", Key="theirs", Body=b"2")
        assert (stage.front.objects(), other.front.objects()) == ({"mine": b"1"}, {"theirs": b"2"})
    with fronted() as third:
        assert third.front.objects() == {}
        assert client(third.front.endpoint).list_objects_v2(Bucket="lake")["KeyCount"] == 0
    assert s3.get_object(Bucket="lake", Key="mine")["Body"].read() == b"1"
    assert stage.effects() == [("put", "mine", b"1")]


def test_a_connection_serves_many_requests(stage: Stage) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(stage.front.endpoint.rpartition(":")[2]), timeout=10)
    connection.connect()
    used = connection.sock
    for number in range(3):
        connection.request("PUT", f"/lake/{number}", b"x")
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (200, b"")
        assert connection.sock is used
    connection.close()


def test_a_body_that_breaks_off_is_no_request(stage: Stage) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(stage.front.endpoint.rpartition(":")[2]), timeout=10)
    connection.putrequest("PUT", "/lake/torn")
    connection.putheader("Content-Length", "100")
    connection.endheaders(b"only this")
    connection.close()
    stage.front.close()
    assert stage.effects() == []
    assert stage.front.requests == {}


def test_nothing_runs_after_close() -> None:
    before = set(threading.enumerate())
    with fronted(silence_ms=600_000) as stage, ThreadPoolExecutor(3) as pool:
        s3 = client(stage.front.endpoint)
        s3.put_object(Bucket="lake", Key="idle connection", Body=b"1")
        kinds = (FaultKind.TIMEOUT_LOST, FaultKind.TIMEOUT_LATE, FaultKind.SLOW_STORAGE)
        slow = (aimed(FaultKind.SLOW_STORAGE, "slow-storage$", late_ms=600_000),)
        stage.interceptor.arm(*(aimed(kind, f"{kind.value}$") for kind in kinds[:2]), *slow)
        waiting = [pool.submit(s3.put_object, Bucket="lake", Key=kind.value, Body=b"2") for kind in kinds]
        stage.wait_for(lambda: len(stage.faults()) == len(kinds), "three faults")
        assert not any(one.done() for one in waiting)
        stage.front.close()
        assert all(one.exception(timeout=10) is not None for one in waiting[:2])
    assert set(threading.enumerate()) <= before
    stage.front.close()


@pytest.mark.parametrize("connected", [False, True])
def test_an_exit_that_skips_close_ends_the_process(connected: bool) -> None:
    program = (
        "import socket, threading\n"
        "from marker_sim.worlds.s3_front.http_server import HttpServer\n"
        "asked = threading.Event()\n"
        "def application(environ):\n"
        "    asked.set()\n"
        "    threading.Event().wait()\n"
        "server = HttpServer(application)\n"
        f"if {connected}:\n"
        "    connection = socket.create_connection(('127.0.0.1', server.port))\n"
        "    connection.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n')\n"
        "    assert asked.wait(10)\n"
        "raise KeyboardInterrupt\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60)
    assert ended.returncode and ended.stderr.rstrip().endswith("KeyboardInterrupt"), ended


def test_a_fault_that_the_front_cannot_do_is_trouble_of_the_kit() -> None:
    stage = Stage()
    stage.interceptor.arm(aimed(FaultKind.DISK_FULL))
    assert refusal(client(stage.front.endpoint).put_object, Bucket="lake", Key="a", Body=b"1") == 500
    with pytest.raises(HarnessError, match="disk-full was aimed at a"):
        stage.front.close()


def _request(
    stage: Stage, method: str, target: str, body: bytes | list[bytes], headers: dict[str, str] | None = None
) -> int:
    """The status that a request without a client library is answered with; a list of pieces is sent in chunks."""
    connection = http.client.HTTPConnection("127.0.0.1", int(stage.front.endpoint.rpartition(":")[2]), timeout=10)
    try:
        connection.request(method, target, body, headers or {}, encode_chunked=isinstance(body, list))
        return connection.getresponse().status
    finally:
        connection.close()
