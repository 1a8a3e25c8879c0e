"""One bucket of moto's S3, separate from all others in this process, called as a WSGI application or read directly.

Moto keeps its state per account for the whole process, and one table of bucket names for all accounts. So each store
has an account of its own, and its bucket is taken out of that table: several stores may hold a bucket of one name.
Callers hold a lock: moto compares and puts in two steps, and its dictionaries are not thread-safe.
Source: moto 5.2.5, `moto.s3.models.S3Backend.get_bucket`, which looks at its own buckets before that table.
"""

from __future__ import annotations

import os
import threading
import uuid
from typing import TYPE_CHECKING, Any

from marker_sim.errors import HarnessError
from marker_sim.surroundings.requirements import importing
from marker_sim.worlds.s3_front.http_server import Response

if TYPE_CHECKING:
    from wsgiref.types import WSGIEnvironment

BUCKET, REGION = "lake", "us-east-1"  # The defaults of the kit's S3.
_PARTITION = "aws"
_OVERRIDES = "MOTO_ACCOUNT_ID"
# Moto reads only the service and the region from it.
_AUTHORIZATION = f"AWS4-HMAC-SHA256 Credential=KIT/20200101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"
_MAKING = threading.Lock()  # Its creation compiles syntax trees, which Python 3.11 cannot do in two threads.


class MotoStore:
    """A new bucket. HarnessError when moto is not installed."""

    def __init__(self, bucket: str) -> None:
        with importing("storage s3"):
            from moto.moto_server.werkzeug_app import create_backend_app
            from moto.s3.models import s3_backends
            from werkzeug.test import run_wsgi_app  # Moto's own web framework.
        if _OVERRIDES in os.environ:
            raise HarnessError(f"{_OVERRIDES} is set: moto would put every store of this process into one; unset it")
        self.bucket = bucket
        self._account = f"{uuid.uuid4().int % 10**12:012d}"
        self._backends: Any = s3_backends
        self._run = run_wsgi_app
        # Other code with moto in this process may own a bucket of that name, which stays.
        others = self._backends.bucket_accounts.pop(bucket, None)
        self._backends[self._account][_PARTITION].create_bucket(bucket, REGION)
        self._backends.bucket_accounts.pop(bucket, None)
        if others is not None:
            self._backends.bucket_accounts[bucket] = others
        self._bucket: Any = self._backends[self._account][_PARTITION].buckets[bucket]
        with _MAKING:
            self._application: Any = create_backend_app("s3")

    def ask(self, environ: WSGIEnvironment) -> Response:
        """Moto's answer to a request, without the caller's identity and host name.

        Moto reads keys from RAW_URI. PATH_INFO only finds the handler, and does not find it for a key with a line feed.
        """
        ours = dict(environ)
        bucket, _, key = ours["PATH_INFO"].removeprefix("/").partition("/")
        if key:
            ours["PATH_INFO"] = f"/{bucket}/key"
        ours["HTTP_AUTHORIZATION"] = _AUTHORIZATION
        ours["HTTP_X_MOTO_ACCOUNT_ID"] = self._account
        ours["HTTP_HOST"] = "127.0.0.1"
        chunks, status, headers = self._run(self._application, ours, buffered=True)
        return Response(status, list(headers), b"".join(chunks))

    def version(self, key: str) -> object:
        """The identity of a key's stored value; a later put of equal content has another."""
        stored = self._bucket.keys.get(key)
        return stored if hasattr(stored, "value") else None

    def content(self, key: str) -> bytes | None:
        """What a key stores, None for nothing."""
        stored: Any = self.version(key)
        return None if stored is None else bytes(stored.value)

    def has_upload(self, key: str, upload: str) -> bool:
        """Whether a multipart upload for a key is in progress, or produced what the key stores.

        Moto raises KeyError for an unknown upload, and silently completes one of another key.
        """
        going = self._bucket.multiparts.get(upload)
        if going is not None:
            return bool(going.key_name == key)
        made_by = getattr(self.version(key), "multipart", None)
        return made_by is not None and bool(made_by.id == upload)

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Everything stored under keys with a prefix, sorted."""
        found = {}
        for key in sorted(self._bucket.keys):
            content = self.content(key) if key.startswith(prefix) else None
            if content is not None:
                found[key] = content
        return found

    def change(self, key: str, data: bytes | None) -> None:
        """Put or delete an object without a request."""
        backend: Any = self._backends[self._account][_PARTITION]
        if data is None:
            backend.delete_object(self.bucket, key)
        else:
            backend.put_object(self.bucket, key, data)

    def close(self) -> None:
        """Delete the account and its buffers. May be called again."""
        backend = self._backends.pop(self._account, None)
        if backend is None:
            return
        for key in list(self._bucket.keys):
            stored: Any = self.version(key)
            if stored is not None:
                stored.dispose()
        for upload in self._bucket.multiparts.values():
            upload.dispose()
