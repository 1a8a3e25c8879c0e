"""Parses a request to S3 from its head, its query and, where keys are in it, its body; the replies that are not moto's.

    PUT key, POST key?uploadId           put      copies, and uploads in parts when they complete
    DELETE key, POST bucket?delete       delete   one call, however many keys
    GET or HEAD key                      get
    GET bucket                           list     the path is the prefix
    PUT key?partNumber&uploadId, POST key?uploads, DELETE key?uploadId, PUT key?acl, PUT key?tagging
    and every other GET and HEAD         other    they change no object and are not judged

Everything else is refused here, so that no effect goes unrecorded and no odd request is trouble of the kit: moto
overlooks sub-resources that it does not know and stores or deletes the object all the same, and it raises at methods
and bodies that it does not know.

A process is the access key that signed the request in its Authorization header; without one (a presigned address, an
anonymous request) it is "anonymous". Nothing is verified: signatures are not what is judged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from marker_sim.worlds.s3_front.http_server import Response

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

ANONYMOUS = "anonymous"
Operation = Literal["put", "delete", "get", "list", "other"]
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/")
_OLD_CREDENTIAL = re.compile(r"AWS ([^:\s]+):")
_PARTS = frozenset({"partNumber", "uploads", "uploadId"})
_SIGNED = "x-amz-"
_PREFIXED_TAG = re.compile(rb"</?[^\s<>/!?:]+:")
_ABOUT_KEYS = frozenset({"acl", "attributes", "legal-hold", "restore", "retention", "select", "tagging", "torrent"})
_ABOUT_BUCKETS = frozenset(
    {"accelerate", "acl", "analytics", "cors", "encryption", "intelligent-tiering", "inventory", "lifecycle"}
    | {"location", "logging", "metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus"}
    | {"publicAccessBlock", "replication", "requestPayment", "tagging", "uploads", "versioning", "versions", "website"}
)
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NO_DELETION = b"</DeleteResult>"
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
_EMPTY_RESULT = f'{_DECLARATION}<DeleteResult xmlns="{_NAMESPACE}"></DeleteResult>'.encode()
# Nothing was done, try again later; the outcome is unknown to the caller.
SLOW_DOWN = 503, "SlowDown", "Please reduce your request rate."
INTERNAL_ERROR = 500, "InternalError", "We encountered an internal error. Please try again."


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Request:
    """A request about the bucket.

    keys: the keys that it may change or reads; many: whether it is a DeleteObjects request.

    upload: the id of the multipart upload that it continues or ends, "" for none.
    """

    process: str
    operation: Operation
    path: str
    keys: tuple[str, ...] = ()
    many: bool = False
    upload: str = ""

    @property
    def writes(self) -> bool:
        """Whether the request may change an object."""
        return self.operation in ("put", "delete")


def process_of(environ: WSGIEnvironment) -> str:
    """The process named by the access key of a request."""
    written = environ.get("HTTP_AUTHORIZATION", "")
    match = _CREDENTIAL.search(written) or _OLD_CREDENTIAL.match(written)
    return match[1] if match else ANONYMOUS


def read_ask(environ: WSGIEnvironment, bucket: str) -> S3Request | Response:
    """The parsed request, or the reply that refuses it.

    Refused are: other buckets, because all stores of this process share moto's names of buckets; creating, deleting and
    configuring the bucket, because versions and locks would change what an effect is; forms; and whatever moto does not
    know.
    """
    method = environ["REQUEST_METHOD"]
    raw_path = environ["RAW_URI"].partition("?")[0]
    asked_bucket, slash, raw_key = raw_path.removeprefix("/").partition("/")
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    process = process_of(environ)
    if not asked_bucket:
        return S3Request(process=process, operation="other", path="")
    if unquote(asked_bucket) != bucket:
        return error(404, "NoSuchBucket", f"The only bucket here is {bucket}", raw_path)
    if slash and raw_key:
        return _about_key(process, method, unquote(raw_key), query, environ)
    return _about_bucket(process, method, query, environ)


def _about_key(  # noqa: C901
    process: str, method: str, key: str, query: dict[str, list[str]], environ: WSGIEnvironment
) -> S3Request | Response:
    about = (_ABOUT_KEYS | _PARTS) & query.keys()
    unknown = {name for name, values in query.items() if values == [""] and not name.lower().startswith(_SIGNED)}
    operation: Operation = "other"
    wanted = ""  # The required root of the body, if any.
    match method, *sorted(about or unknown):
        case "GET" | "HEAD", *names:
            if not about or ("partNumber" in names and "uploadId" not in names):
                operation = "get"
        case ["PUT"]:
            operation = "put"
        case ["DELETE"]:
            operation = "delete"
        case ["POST", "uploadId"] if query["uploadId"][0]:
            operation, wanted = "put", "CompleteMultipartUpload"
        case ["PUT", "partNumber", "uploadId"] if query["uploadId"][0]:
            pass
        case ["DELETE", "uploadId"] if query["uploadId"][0]:
            pass
        case ["POST", "uploads"] if not _body(environ):
            pass
        case ["PUT", "acl"]:
            wanted = "AccessControlPolicy" if _body(environ) else ""
        case ["PUT", "tagging"]:
            wanted = "Tagging"
        case _:
            what = f"{method} of a key with {', '.join(sorted(about or unknown)) or 'nothing in its query'}"
            return error(501, "NotImplemented", f"{what} is not understood here", environ["RAW_URI"])
    if not re.fullmatch("[0-9]{1,5}", query.get("partNumber", ["1"])[0]):
        return error(400, "InvalidArgument", "Part number must be an integer", environ["RAW_URI"])
    if wanted and not _is_whole(_body(environ), wanted):
        return error(400, "MalformedXML", f"The body is no <{wanted}>", environ["RAW_URI"])
    upload = "" if method in ("GET", "HEAD") else query.get("uploadId", [""])[0]
    return S3Request(process=process, operation=operation, path=key, keys=(key,), upload=upload)


def _about_bucket(
    process: str, method: str, query: dict[str, list[str]], environ: WSGIEnvironment
) -> S3Request | Response:
    if method == "GET" and not _ABOUT_BUCKETS & query.keys():
        return S3Request(process=process, operation="list", path=query.get("prefix", [""])[0])
    if method in ("GET", "HEAD"):
        return S3Request(process=process, operation="other", path="")
    if method == "POST" and "delete" in query:
        keys = keys_of(_body(environ))
        if keys is None:
            return error(400, "MalformedXML", "The body is no <Delete> with the keys to delete", "")
        return S3Request(process=process, operation="delete", path="\n".join(keys), keys=keys, many=True)
    if method == "PUT" and not query:
        return Response("200 OK", [("Location", environ["RAW_URI"])], b"")
    return error(501, "NotImplemented", "The bucket is as the kit made it; only objects can be changed", "")


def keys_of(body: bytes) -> tuple[str, ...] | None:
    """The distinct keys of a DeleteObjects request in order; None for other requests."""
    root = _parsed(body, "Delete")
    if root is None:
        return None
    entries = [entry.findall("{*}Key") for entry in root.iterfind("{*}Object")]
    if not all(len(found) == 1 and found[0].text and not len(found[0]) and not found[0].attrib for found in entries):
        return None
    return tuple(dict.fromkeys(found[0].text or "" for found in entries)) or None


class _NoDoctype(ElementTree.TreeBuilder):
    """An XML parser that refuses document types, as S3 and moto do."""

    def doctype(self, *_: object) -> None:
        raise ElementTree.ParseError("a document type")


def _parsed(body: bytes, wanted: str) -> ElementTree.Element | None:
    """The root of a body as moto reads it, None where it cannot, as with prefixes in tags."""
    parser = ElementTree.XMLParser(target=_NoDoctype())
    try:
        root: ElementTree.Element = ElementTree.fromstring(body, parser)
    except ElementTree.ParseError:
        return None
    return None if _PREFIXED_TAG.search(body) or root.tag.rpartition("}")[2] != wanted else root


def _is_whole(body: bytes, wanted: str) -> bool:
    """Whether moto can handle the body of a request about a key."""
    root = _parsed(body, wanted)
    if root is None:
        return False
    match wanted:
        case "CompleteMultipartUpload":
            parts = root.findall("{*}Part")
            return bool(parts) and all(
                re.fullmatch("[0-9]{1,5}", part.findtext("{*}PartNumber", "")) and part.findtext("{*}ETag", "")
                for part in parts
            )
        case "Tagging":
            tags = root.findall("{*}TagSet/{*}Tag")
            return bool(tags) and all(tag.findtext("{*}Key") and tag.find("{*}Value") is not None for tag in tags)
        case _:
            return (
                all(
                    grant.find("{*}Grantee") is not None and grant.findtext("{*}Permission")
                    for grant in root.findall("{*}AccessControlList/{*}Grant")
                )
                and root.find("{*}Owner") is not None
                and root.find("{*}AccessControlList/{*}Grant") is not None
            )


def _body(environ: WSGIEnvironment) -> bytes:
    """The body of a request, which is made readable again."""
    body: bytes = environ["wsgi.input"].read()
    environ["wsgi.input"].seek(0)
    return body


def without(body: bytes, kept: frozenset[str]) -> bytes:
    """The body of a DeleteObjects request without some of its keys."""
    root = ElementTree.fromstring(body)
    for entry in list(root.iterfind("{*}Object")):
        if entry.findtext("{*}Key", "") in kept:
            root.remove(entry)
    namespace = root.tag[1:].partition("}")[0] if root.tag.startswith("{") else None
    return ElementTree.tostring(root, default_namespace=namespace)


def error(code: int, name: str, message: str, resource: str) -> Response:
    """An error reply in S3's format."""
    body = (
        f"{_DECLARATION}<Error><Code>{name}</Code><Message>{escape(message)}</Message>"
        f"<Resource>{escape(resource)}</Resource><RequestId>0</RequestId></Error>"
    )
    status = f"{code} {HTTPStatus(code).phrase}"
    return Response(status, [("Content-Type", "application/xml")], body.encode("utf-8", "replace"))


def with_errors(response: Response, keys: Iterable[str]) -> Response:
    """A reply to DeleteObjects with InternalError added for some keys."""
    _, code, message = INTERNAL_ERROR
    entries = "".join(
        f"<Error><Key>{escape(key)}</Key><Code>{code}</Code><Message>{message}</Message></Error>" for key in keys
    )
    body = response.body if _NO_DELETION in response.body else _EMPTY_RESULT
    body = body.replace(_NO_DELETION, entries.encode("utf-8") + _NO_DELETION)
    headers = [(name, value) for name, value in response.headers if name.lower() != "content-length"]
    return Response(response.status, headers, body)
