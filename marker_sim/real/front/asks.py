"""What a request to S3 asks for, read from its head, query and (for a deletion of many keys) its body.

    PUT key, POST key?uploadId           put      copies, and uploads in parts when they complete
    DELETE key, POST bucket?delete       delete   one call, however many keys
    GET or HEAD key                      get
    GET bucket                           list     the path is the prefix
    anything else about the bucket       other    parts of uploads, tags, locations: nobody judges them

A process is the access key that signed the request in its Authorization header; without one (a presigned address, an
anonymous request) it is "anonymous". Nothing is verified: signatures are not what is judged here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

from marker_sim.real.front import replies

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

    from marker_sim.real.front.http import Response

ANONYMOUS = "anonymous"
Operation = Literal["put", "delete", "get", "list", "other"]
_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/")
_OLD_CREDENTIAL = re.compile(r"AWS ([^:\s]+):")
_PARTS = frozenset({"partNumber", "uploads", "uploadId"})
_ABOUT_KEYS = frozenset({"acl", "attributes", "legal-hold", "restore", "retention", "select", "tagging", "torrent"})
_ABOUT_BUCKETS = frozenset(
    {"accelerate", "acl", "analytics", "cors", "encryption", "intelligent-tiering", "inventory", "lifecycle"}
    | {"location", "logging", "metrics", "notification", "object-lock", "ownershipControls", "policy", "policyStatus"}
    | {"publicAccessBlock", "replication", "requestPayment", "tagging", "uploads", "versioning", "versions", "website"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request about the bucket. keys: those it may change or reads; many: a deletion of many keys."""

    process: str
    operation: Operation
    path: str
    keys: tuple[str, ...] = ()
    many: bool = False

    @property
    def writes(self) -> bool:
        """Whether it may change an object."""
        return self.operation in ("put", "delete")


def process_of(environ: WSGIEnvironment) -> str:
    """The access key that signed a request."""
    written = environ.get("HTTP_AUTHORIZATION", "")
    match = _CREDENTIAL.search(written) or _OLD_CREDENTIAL.match(written)
    return match[1] if match else ANONYMOUS


def read_ask(environ: WSGIEnvironment, bucket: str) -> Ask | Response:
    """What is asked of the bucket, or the reply that refuses it.

    Refused: other buckets, because names of buckets are shared with other stores of this process; making, removing and
    configuring the bucket, because versions and locks would change what an effect is; forms.
    """
    method = environ["REQUEST_METHOD"]
    raw_path = environ["RAW_URI"].partition("?")[0]
    asked_bucket, slash, raw_key = raw_path.removeprefix("/").partition("/")
    query = parse_qs(environ["QUERY_STRING"], keep_blank_values=True)
    process = process_of(environ)
    if not asked_bucket:
        return Ask(process=process, operation="other", path="")
    if unquote(asked_bucket) != bucket:
        return replies.error(404, "NoSuchBucket", f"The only bucket here is {bucket}", raw_path)
    if slash and raw_key:
        return _about_key(process, method, unquote(raw_key), query)
    return _about_bucket(process, method, query, environ)


def _about_key(process: str, method: str, key: str, query: dict[str, list[str]]) -> Ask | Response:
    plain = not (_ABOUT_KEYS | _PARTS) & query.keys()
    operation: Operation = "other"
    match method:
        case "GET" | "HEAD" if plain or ("partNumber" in query and "uploadId" not in query):
            operation = "get"
        case "PUT" if plain:
            operation = "put"
        case "POST" if "uploadId" in query:
            operation = "put"
        case "DELETE" if plain:
            operation = "delete"
    return Ask(process=process, operation=operation, path=key, keys=(key,))


def _about_bucket(process: str, method: str, query: dict[str, list[str]], environ: WSGIEnvironment) -> Ask | Response:
    if method == "GET" and not _ABOUT_BUCKETS & query.keys():
        return Ask(process=process, operation="list", path=query.get("prefix", [""])[0])
    if method in ("GET", "HEAD"):
        return Ask(process=process, operation="other", path="")
    if method == "POST" and "delete" in query:
        body = environ["wsgi.input"].read()
        environ["wsgi.input"].seek(0)
        keys = keys_of(body)
        if keys is None:
            return replies.error(400, "MalformedXML", "The body is no <Delete> with the keys to delete", "")
        return Ask(process=process, operation="delete", path="\n".join(keys), keys=keys, many=True)
    if method == "PUT" and not query:
        return replies.ok({"Location": environ["RAW_URI"]})
    return replies.error(501, "NotImplemented", "The bucket is as the kit made it; only objects can be changed", "")


def keys_of(body: bytes) -> tuple[str, ...] | None:
    """The keys of a deletion of many, None for something else; in order, each once."""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        return None
    keys = [found.text or "" for found in root.iterfind("{*}Object/{*}Key")]
    return tuple(dict.fromkeys(keys)) if keys else None


def without(body: bytes, spared: frozenset[str]) -> bytes:
    """The body of a deletion of many without some of its keys."""
    root = ElementTree.fromstring(body)
    for entry in list(root.iterfind("{*}Object")):
        if entry.findtext("{*}Key", "") in spared:
            root.remove(entry)
    namespace = root.tag[1:].partition("}")[0] if root.tag.startswith("{") else None
    return ElementTree.tostring(root, default_namespace=namespace)
