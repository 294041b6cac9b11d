"""A lake in a bucket of S3, or of what speaks like it."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
from botocore.exceptions import ClientError
from pyarrow import fs as pafs

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import Doing, aws_call
from eventlake.rules.errors import ServiceTrouble
from eventlake.storage.base import THREADS, Change, R, Storage, StoredFile, T
from eventlake.storage.s3_arrow import arrow_files
from eventlake.storage.s3_copy import copy_object
from eventlake.storage.s3_listing import Listing
from eventlake.storage.s3_output import S3Output
from eventlake.storage.s3_removal import abort_uploads, delete_keys
from eventlake.storage.s3_requests import is_conflict, is_hidden, is_lost, is_missing, read_object

STREAM_BYTES = 8 << 20
"""Asked for at once by who reads a file from beginning to end: each is a request."""

_UPDATES = 50


@dataclass(frozen=True)
class S3Storage(Storage):
    """A bucket and a prefix in it; folders are what the keys of objects look like.

    Arrow reads and boto3 does the rest: Arrow can neither write under a condition, nor give up a
    file that it has begun to write, nor does it tell ETags.
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
        with self._call(Doing.DOWNLOAD, ""):
            return arrow_files(self.access, self.bucket)

    def fs_path(self, path: str) -> str:
        return f"{self.bucket}/{self._key(path)}"

    def _key(self, path: str) -> str:
        return f"{self.prefix}/{path}" if self.prefix and path else self.prefix or path

    def _below(self, folder: str) -> str:
        key = self._key(folder.rstrip("/"))
        return f"{key}/" if key else ""

    def _object(self, path: str) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self._key(path)}

    def _call(self, doing: Doing, path: str) -> AbstractContextManager[None]:
        return aws_call(doing, self.full(path))

    def read(self, path: str) -> bytes | None:
        return self._read(path)[0]

    def _read(self, path: str) -> tuple[bytes | None, str]:
        """Content and ETag."""
        with self._call(Doing.DOWNLOAD, path):
            return read_object(self.client, **self._object(path))

    def open_input(self, path: str) -> pa.NativeFile:
        return self._opened(path, lambda: self.fs.open_input_file(self.fs_path(path)))

    def open_stream(self, path: str) -> pa.NativeFile:
        full, size = self.fs_path(path), STREAM_BYTES
        return self._opened(
            path, lambda: self.fs.open_input_stream(full, compression=None, buffer_size=size)
        )

    def _opened(self, path: str, opener: Callable[[], pa.NativeFile]) -> pa.NativeFile:
        with self._call(Doing.DOWNLOAD, path):
            try:
                return opener()
            except OSError as error:
                # As with `is_hidden`, but in Arrow's words.
                if "ACCESS_DENIED" in str(error) and self._size(path) is None:
                    raise FileNotFoundError(self.full(path)) from error
                raise

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with self._call(Doing.UPLOAD, path):
            output = S3Output(self.client, **self._object(path))
            try:
                with pa.PythonFile(output, mode="w") as out:
                    yield out
                output.finish()
            except BaseException:
                output.abort()
                raise

    def write(self, path: str, data: bytes) -> None:
        with self._call(Doing.UPLOAD, path):
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
            f"{self.full(path)} was changed by others {_UPDATES} times while it was about to be "
            "changed here. There is nothing to correct; the next sync tries again."
        )

    def _put_if(self, path: str, data: bytes, **condition: str) -> bool:
        for attempt in range(_UPDATES):
            try:
                with self._call(Doing.UPLOAD, path):
                    self.client.put_object(**self._object(path), Body=data, **condition)
                return True
            except ClientError as error:
                if is_lost(error):
                    # Of what was sent again the first may have arrived, its answer been lost.
                    sent_again = error.response["ResponseMetadata"].get("RetryAttempts", 0) > 0
                    return bool(sent_again and self.read(path) == data)
                if not is_conflict(error):
                    raise
                _pause(attempt)  # somebody writes it just now; who wins is not decided
        return False

    def exists(self, path: str) -> bool:
        if self._size(path) is not None:
            return True
        with self._call(Doing.LIST, path):
            return self._listing().any(self._below(path))

    def _size(self, path: str) -> int | None:
        with self._call(Doing.DOWNLOAD, path):
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
        with self._call(Doing.LIST, folder):
            below = self._below(folder)
            listing = self._listing()
            found = listing.deep(below) if recursive else listing.flat(below)
        cut = len(self._below(""))
        files = [
            StoredFile(o.key[cut:], o.size, o.etag, o.modified_ns)
            for o in found
            if not o.key.endswith("/")
        ]
        return sorted(
            (file for file in files if not file.name.startswith(".")), key=lambda file: file.path
        )

    def folders(self, folder: str) -> list[str]:
        with self._call(Doing.LIST, folder):
            found = self._listing().folders(self._below(folder))
        return sorted(key.rstrip("/").rpartition("/")[2] for key in found)

    def place(self, source: str, target: str) -> None:
        if self._size(target) is not None:
            return
        try:
            self.copy(source, target)
        except FileNotFoundError:
            if self._size(target) is None:  # else another run has just done it
                raise

    def settle(self, paths: Sequence[str]) -> None:
        """What S3 has said that it has, it has."""

    def copy(self, source: str, target: str) -> None:
        size = self._size(source)
        if size is None:
            raise FileNotFoundError(self.full(source))
        with self._call(Doing.UPLOAD, target):
            copy_object(self.client, self.bucket, self._key(source), self._key(target), size)

    def each(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(do, items))

    def delete(self, path: str) -> None:
        with self._call(Doing.DELETE, path):
            self.client.delete_object(**self._object(path))

    def delete_folder(self, folder: str) -> None:
        below = self._below(folder)
        with self._call(Doing.DELETE, folder):
            keys = [found.key for found in self._listing().deep(below)]
            delete_keys(self.client, self.bucket, keys)
            abort_uploads(self.client, self.bucket, below)

    def tidy(self, folder: str) -> None:
        """S3 has no folders that could be empty."""

    def abandon(self, folder: str, run_id: str) -> None:
        with self._call(Doing.DELETE, folder):
            abort_uploads(self.client, self.bucket, self._below(folder), run_id)


def _pause(attempt: int) -> None:
    """Longer each time, and never as long as the other's."""
    time.sleep(random.uniform(0, min(0.02 * 2**attempt, 1.0)))
