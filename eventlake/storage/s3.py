"""Storage in S3 or an S3-compatible service."""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import urlsplit

import pyarrow as pa
from botocore.credentials import ReadOnlyCredentials
from botocore.exceptions import (
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from pyarrow import fs as pafs
from s3transfer.manager import (  # type: ignore[import-untyped]
    TransferConfig,
    TransferManager,
)

from eventlake.aws.access import ATTEMPTS, AwsAccess
from eventlake.aws.refusals import aws_call
from eventlake.rules.errors import ServiceTrouble
from eventlake.storage.base import THREADS, Change, R, Storage, StoredFile, T
from eventlake.storage.s3_listing import Listing

_lock = threading.Lock()
_made: dict[tuple[int, AwsAccess, str, str], tuple[ReadOnlyCredentials, pafs.FileSystem]] = {}


def arrow_files(access: AwsAccess, bucket: str) -> pafs.FileSystem:
    """The Arrow file system of a bucket, cached until the credentials are renewed."""
    keys = access.credentials()
    client = access.client("s3")
    endpoint: str = client.meta.endpoint_url
    key = (os.getpid(), access, bucket, endpoint)
    with _lock:
        known = _made.get(key)
        if known is None or known[0] != keys:
            _made[key] = known = (keys, _open(client, bucket, endpoint, keys))
        return known[1]


def _open(client: Any, bucket: str, endpoint: str, keys: ReadOnlyCredentials) -> pafs.FileSystem:
    url = urlsplit(endpoint)
    own = {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} & os.environ.keys()
    return pafs.S3FileSystem(
        access_key=keys.access_key,
        secret_key=keys.secret_key,
        session_token=keys.token,
        region=bucket_region(client, bucket),
        scheme=url.scheme,
        endpoint_override=url.netloc if own or "amazonaws.com" not in url.netloc else None,
        connect_timeout=10,
        request_timeout=60,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=_attempts()),
    )


def _attempts() -> int:
    return int(os.environ.get("AWS_MAX_ATTEMPTS", ATTEMPTS))


def bucket_region(client: Any, bucket: str) -> str | None:
    """The actual region of a bucket; Arrow does not follow redirects."""
    try:
        answer = client.head_bucket(Bucket=bucket)
    except ClientError as error:
        answer = error.response
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region: str | None = headers.get("x-amz-bucket-region") or client.meta.region_name
    return None if region == "aws-global" else region


LARGEST = 5 << 30
"""The largest object that S3 copies in one request."""

COPY_PART_BYTES = 512 << 20


def copy_object(client: Any, bucket: str, source: str, target: str, size: int) -> None:
    """Copy an object of a known size."""
    origin = {"Bucket": bucket, "Key": source}
    if size <= LARGEST:
        client.copy_object(Bucket=bucket, Key=target, CopySource=origin)
        return
    config = TransferConfig(multipart_threshold=LARGEST, multipart_chunksize=COPY_PART_BYTES)
    with TransferManager(client, config) as transfers:
        transfers.copy(origin, bucket, target).result()  # aborts the upload on failure


PART_BYTES = 16 << 20
"""Files up to this size are uploaded from memory in one request, larger ones in parts."""
_PARTS_AT_ONCE = 4


def upload(client: Any, file: IO[bytes], **target: str) -> None:
    """Upload a file from its start; a failure leaves nothing behind."""
    size = file.tell()
    file.seek(0)
    if size <= PART_BYTES:
        client.put_object(**target, Body=file.read())
        return
    config = TransferConfig(
        multipart_threshold=PART_BYTES,
        multipart_chunksize=PART_BYTES,
        max_request_concurrency=_PARTS_AT_ONCE,
        max_in_memory_upload_chunks=_PARTS_AT_ONCE,
    )
    with TransferManager(client, config) as transfers:
        transfers.upload(file, target["Bucket"], target["Key"]).result()  # aborts on failure


_DELETE_BATCH = 1000


def delete_keys(client: Any, bucket: str, keys: Sequence[str]) -> None:
    """Delete objects in batches of the size that S3 allows."""

    def delete(batch: Sequence[str]) -> None:
        objects = [{"Key": key} for key in batch]
        answer = client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        for refused in answer.get("Errors", ()):
            raise ClientError({"Error": refused}, "DeleteObjects")

    batches = [keys[start : start + _DELETE_BATCH] for start in range(0, len(keys), _DELETE_BATCH)]
    if len(batches) == 1:
        delete(batches[0])
    elif batches:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(delete, batches))


def abort_uploads(client: Any, bucket: str, prefix: str, named: str = "") -> None:
    """Abort unfinished uploads below a prefix, optionally only those whose key contains a name."""
    more: dict[str, str] = {}
    while True:
        page = client.list_multipart_uploads(Bucket=bucket, Prefix=prefix, **more)
        for upload in page.get("Uploads", ()):
            if named in upload["Key"][len(prefix) :]:
                _abort(client, bucket, upload)
        if not page.get("IsTruncated"):
            return
        more = {
            "KeyMarker": page["NextKeyMarker"],
            "UploadIdMarker": page["NextUploadIdMarker"],
        }


def _abort(client: Any, bucket: str, upload: dict[str, Any]) -> None:
    try:
        client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    except ClientError as error:
        if error.response["Error"].get("Code") != "NoSuchUpload":  # else already aborted
            raise


_BODY_ATTEMPTS = 4


def read_object(client: Any, **target: str) -> tuple[bytes | None, str]:
    """Content and ETag of an object; None if it does not exist."""
    for attempt in range(1, _BODY_ATTEMPTS + 1):
        try:
            answer = client.get_object(**target)
            body: bytes = answer["Body"].read()
            return body, str(answer["ETag"])
        except ClientError as error:
            if is_missing(error) or is_hidden(error, client, **target):
                return None, ""
            raise
        except (IncompleteReadError, ReadTimeoutError, ResponseStreamingError):
            # botocore does not retry once the response body has started.
            if attempt == _BODY_ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def is_missing(error: ClientError) -> bool:
    """Whether the object (not the bucket) does not exist."""
    return _code(error) in ("NoSuchKey", "404", "NotFound")


def is_hidden(error: ClientError, client: Any, Bucket: str, Key: str) -> bool:
    """Whether S3 answers 403 because the object does not exist.

    S3 does so without permission to list the whole bucket. Listing the key itself may be allowed.
    """
    if _code(error) not in ("AccessDenied", "403"):
        return False
    try:
        page = client.list_objects_v2(Bucket=Bucket, Prefix=Key, MaxKeys=1)
    except ClientError:
        return False
    return all(found["Key"] != Key for found in page.get("Contents", ()))


def is_lost(error: ClientError) -> bool:
    """Whether a condition failed: another writer was first."""
    return _code(error) in ("PreconditionFailed", "412", "NoSuchKey")


def is_conflict(error: ClientError) -> bool:
    """Whether another request is writing the same object."""
    return _code(error) in ("ConditionalRequestConflict", "OperationAborted", "409")


def _code(error: ClientError) -> str:
    return str(error.response["Error"].get("Code", ""))


STREAM_BYTES = 8 << 20
"""Bytes per request of a sequential read."""

_UPDATES = 50


@dataclass(frozen=True)
class S3Storage(Storage):
    """A bucket and a prefix; folders are key prefixes.

    Arrow reads, boto3 does the rest: Arrow has no conditional writes, cannot abort an upload and
    does not return ETags.
    """

    uri: str
    access: AwsAccess = field(default_factory=AwsAccess)

    def __post_init__(self) -> None:
        object.__setattr__(self, "uri", self.uri.rstrip("/"))

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri, "access": self.access}

    @cached_property
    def bucket(self) -> str:
        return self.uri.removeprefix("s3://").partition("/")[0]

    @cached_property
    def prefix(self) -> str:
        return self.uri.removeprefix("s3://").partition("/")[2]

    @property
    def client(self) -> Any:
        return self.access.client("s3")

    @property
    def fs(self) -> pafs.FileSystem:
        with self._call(""):
            return arrow_files(self.access, self.bucket)

    def fs_path(self, path: str) -> str:
        return f"{self.bucket}/{self._key(path)}"

    def full(self, path: str) -> str:
        return path if path.startswith("s3://") else super().full(path)

    def _key(self, path: str) -> str:
        path = path.removeprefix(f"{self.uri}/")
        return f"{self.prefix}/{path}" if self.prefix and path else self.prefix or path

    def _below(self, folder: str) -> str:
        key = self._key(folder.rstrip("/"))
        return f"{key}/" if key else ""

    def _object(self, path: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self._key(path)}

    def _call(self, path: str) -> AbstractContextManager[None]:
        return aws_call(self.full(path))

    def read(self, path: str) -> bytes | None:
        return self._read(path)[0]

    def _read(self, path: str) -> tuple[bytes | None, str]:
        """The content and ETag of a file."""
        with self._call(path):
            return read_object(self.client, **self._object(path))

    def open_input(self, path: str) -> pa.NativeFile:
        return self._opened(path, lambda: self.fs.open_input_file(self.fs_path(path)))

    def open_stream(self, path: str) -> pa.NativeFile:
        full, size = self.fs_path(path), STREAM_BYTES
        return self._opened(
            path, lambda: self.fs.open_input_stream(full, compression=None, buffer_size=size)
        )

    def _opened(self, path: str, opener: Callable[[], pa.NativeFile]) -> pa.NativeFile:
        with self._call(path):
            try:
                return opener()
            except OSError as error:
                # The same as `is_hidden`, for an error of Arrow.
                if "ACCESS_DENIED" in str(error) and self._size(path) is None:
                    raise FileNotFoundError(self.full(path)) from error
                raise

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        # Arrow's own stream completes an upload even if writing failed half-way.
        with self._call(path), SpooledTemporaryFile(PART_BYTES) as out:
            yield out
            upload(self.client, out, **self._object(path))

    def write(self, path: str, data: bytes) -> None:
        with self._call(path):
            self.client.put_object(**self._object(path), Body=data)

    def create(self, path: str, data: bytes) -> bool:
        return self._put_if(path, data, IfNoneMatch="*")

    def update(self, path: str, change: Change) -> None:
        for attempt in range(_UPDATES):
            data, etag = self._read(path)
            changed = change(data)
            if changed is None:
                return
            unchanged = {"IfNoneMatch": "*"} if data is None else {"IfMatch": etag}
            if self._put_if(path, changed, **unchanged):
                return
            _pause(attempt)
        raise ServiceTrouble(
            f"{self.full(path)} was modified concurrently in {_UPDATES} attempts to update it. "
            "There is nothing to correct; the next sync tries again."
        )

    def _put_if(self, path: str, data: bytes, **condition: str) -> bool:
        for attempt in range(_UPDATES):
            try:
                with self._call(path):
                    self.client.put_object(**self._object(path), Body=data, **condition)
                return True
            except ClientError as error:
                if is_lost(error):
                    # After a retry, the first request may have succeeded unnoticed.
                    sent_again = error.response["ResponseMetadata"].get("RetryAttempts", 0) > 0
                    return bool(sent_again and self.read(path) == data)
                if not is_conflict(error):
                    raise
                _pause(attempt)  # a concurrent write is in progress
        return False

    def exists(self, path: str) -> bool:
        if self._size(path) is not None:
            return True
        with self._call(path):
            return self._listing().any(self._below(path))

    def _size(self, path: str) -> int | None:
        if not self._key(path):
            return None  # the bucket itself
        with self._call(path):
            try:
                size: int = self.client.head_object(**self._object(path))["ContentLength"]
            except ClientError as error:
                if is_missing(error) or is_hidden(error, self.client, **self._object(path)):
                    return None
                raise
            return size

    def _listing(self) -> Listing:
        return Listing(self.client, self.bucket)

    def files(self, folder: str, *, recursive: bool = True) -> list[StoredFile]:
        with self._call(folder):
            below = self._below(folder)
            listing = self._listing()
            found = listing.deep(below) if recursive else listing.flat(below)
        cut = len(self._below(""))
        files = [
            replace(file, path=file.path[cut:])
            for file in found
            if file.name and not file.name.startswith(".")
        ]
        return sorted(files, key=lambda file: file.path)

    def folders(self, folder: str) -> list[str]:
        with self._call(folder):
            found = self._listing().folders(self._below(folder))
        return sorted(key.rstrip("/").rpartition("/")[2] for key in found)

    def move_into_place(self, source: str, target: str) -> None:
        if self._size(target) is not None:
            return
        try:
            self.copy(source, target)
        except FileNotFoundError:
            if self._size(target) is None:  # else another run has copied it
                raise

    def make_durable(self, paths: Sequence[str]) -> None:
        """Nothing to do: S3 confirms a write only when it is durable."""

    def copy(self, source: str, target: str) -> None:
        size = self._size(source)
        if size is None:
            raise FileNotFoundError(self.full(source))
        with self._call(target):
            copy_object(self.client, self.bucket, self._key(source), self._key(target), size)

    def each(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if len(items) < 2:
            return [do(item) for item in items]
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(do, items))

    def delete(self, path: str) -> None:
        with self._call(path):
            self.client.delete_object(**self._object(path))

    def delete_folder(self, folder: str) -> None:
        below = self._below(folder)
        with self._call(folder):
            keys = [found.path for found in self._listing().deep(below)]
            delete_keys(self.client, self.bucket, keys)
            abort_uploads(self.client, self.bucket, below)

    def delete_empty_folders(self, folder: str) -> None:
        """Nothing to do: S3 has no folders."""

    def discard_partial_writes(self, folder: str, run_id: str) -> None:
        with self._call(folder):
            abort_uploads(self.client, self.bucket, self._below(folder), run_id)


def _pause(attempt: int) -> None:
    """Exponential backoff with jitter."""
    time.sleep(random.uniform(0, min(0.02 * 2**attempt, 1.0)))
