"""Storage in Azure Data Lake Storage Gen2, and in Blob Storage without hierarchical namespace."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from tempfile import SpooledTemporaryFile
from typing import Any

import pyarrow as pa
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, ContainerClient
from pyarrow import fs as pafs

from eventlake.azure.access import AzureAccess
from eventlake.azure.refusals import azure_call
from eventlake.azure.sessions import PART_BYTES
from eventlake.rules.errors import ServiceTrouble
from eventlake.settings.places import azure_place
from eventlake.storage.adls_listing import Listing
from eventlake.storage.base import THREADS, Change, R, Storage, StoredFile, T

_UPDATES = 50
_BLOCKS_AT_ONCE = 4
_COPY_SECONDS = 3600.0
STREAM_BYTES = 8 << 20
"""Bytes per request of a sequential read."""


@dataclass(frozen=True)
class AdlsStorage(Storage):
    """A container and a prefix.

    Arrow reads, the blob client does the rest: Arrow has no conditional writes. Nothing here needs
    a hierarchical namespace. Accounts that have one keep directories: listings leave them out, and
    deletions remove them (`_delete_directories`).
    """

    uri: str
    access: AzureAccess = field(default_factory=AzureAccess)

    def __post_init__(self) -> None:
        object.__setattr__(self, "uri", azure_place(self.uri).uri)

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri, "access": self.access}

    @cached_property
    def container(self) -> str:
        return azure_place(self.uri).container

    @cached_property
    def host(self) -> str:
        """The host of the account's DFS endpoint."""
        return azure_place(self.uri).host

    @cached_property
    def prefix(self) -> str:
        return azure_place(self.uri).prefix

    @property
    def client(self) -> ContainerClient:
        return self.access.container(self.host, self.container)

    @property
    def fs(self) -> pafs.FileSystem:
        with self._call(""):
            return self.access.arrow_files(self.host)

    def fs_path(self, path: str) -> str:
        return f"{self.container}/{self._key(path)}"

    def full(self, path: str) -> str:
        return path if path.startswith("abfss://") else super().full(path)

    def _key(self, path: str) -> str:
        path = path.removeprefix(f"{self.uri}/")
        return f"{self.prefix}/{path}" if self.prefix and path else self.prefix or path

    def _below(self, folder: str) -> str:
        key = self._key(folder.rstrip("/"))
        return f"{key}/" if key else ""

    def _blob(self, path: str) -> BlobClient:
        return self.client.get_blob_client(self._key(path))

    def _call(self, path: str) -> AbstractContextManager[None]:
        return azure_call(self.full(path), self.access.sign_in)

    def read(self, path: str) -> bytes | None:
        return self._read(path)[0]

    def _read(self, path: str) -> tuple[bytes | None, str]:
        """The content and ETag of a file."""
        with self._call(path):
            try:
                found = self._blob(path).download_blob()
                data: bytes = found.readall()
            except HttpResponseError as error:
                if is_missing(error):
                    return None, ""
                raise
            return data, str(found.properties.etag)

    def open_input(self, path: str) -> pa.NativeFile:
        with self._call(path):
            return self.fs.open_input_file(self.fs_path(path))

    def open_stream(self, path: str) -> pa.NativeFile:
        with self._call(path):
            return self.fs.open_input_stream(
                self.fs_path(path), compression=None, buffer_size=STREAM_BYTES
            )

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        # Arrow's own stream commits what was written even if writing failed half-way.
        with self._call(path), SpooledTemporaryFile(PART_BYTES) as out:
            yield out
            size = out.tell()
            out.seek(0)
            self._blob(path).upload_blob(
                out, length=size, overwrite=True, max_concurrency=_BLOCKS_AT_ONCE
            )

    def write(self, path: str, data: bytes) -> None:
        with self._call(path):
            self._blob(path).upload_blob(data, overwrite=True)

    def create(self, path: str, data: bytes) -> bool:
        return self._put_if(path, data, match_condition=MatchConditions.IfMissing)

    def update(self, path: str, change: Change) -> None:
        for attempt in range(_UPDATES):
            data, etag = self._read(path)
            changed = change(data)
            if changed is None:
                return
            condition: dict[str, Any] = {"match_condition": MatchConditions.IfMissing}
            if data is not None:
                condition = {"match_condition": MatchConditions.IfNotModified, "etag": etag}
            if self._put_if(path, changed, **condition):
                return
            _pause(attempt)
        raise ServiceTrouble(
            f"{self.full(path)} was modified concurrently in {_UPDATES} attempts to update it. "
            "There is nothing to correct; the next sync tries again."
        )

    def _put_if(self, path: str, data: bytes, **condition: Any) -> bool:
        with self._call(path):
            try:
                self._blob(path).upload_blob(data, overwrite=True, **condition)
            except HttpResponseError as error:
                if not is_lost(error):
                    raise
                # After a retry, the first request may have succeeded unnoticed.
                return was_sent_again(error) and self.read(path) == data
            return True

    def exists(self, path: str) -> bool:
        if self._size(path) is not None:
            return True
        with self._call(path):
            return Listing(self.client).any(self._below(path))

    def _size(self, path: str) -> int | None:
        found = self._properties(path)
        return None if found is None or _is_directory(found) else int(found.size)

    def _properties(self, path: str) -> Any:
        """The properties of a blob or directory, or None if it does not exist."""
        if not self._key(path):
            return None  # the container itself
        with self._call(path):
            try:
                return self._blob(path).get_blob_properties()
            except HttpResponseError as error:
                if is_missing(error):
                    return None
                raise

    def files(self, folder: str, *, recursive: bool = True) -> list[StoredFile]:
        with self._call(folder):
            listing, below = Listing(self.client), self._below(folder)
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
            found = Listing(self.client).folders(self._below(folder))
        return sorted(key.rstrip("/").rpartition("/")[2] for key in found)

    def move_into_place(self, source: str, target: str) -> None:
        try:
            self._copy(source, target, match_condition=MatchConditions.IfMissing)
        except FileNotFoundError:
            if self._size(target) is None:  # else another run has copied it
                raise

    def make_durable(self, paths: Sequence[str]) -> None:
        """Nothing to do: Azure confirms a write only when it is durable."""

    def copy(self, source: str, target: str) -> None:
        self._copy(source, target)

    def _copy(self, source: str, target: str, **condition: Any) -> None:
        with self._call(target):
            try:
                copied = self._blob(target).start_copy_from_url(self._blob(source).url, **condition)
                status = copied["copy_status"]
            except HttpResponseError as error:
                if is_missing(error):
                    raise FileNotFoundError(self.full(source)) from error
                if not is_lost(error):
                    raise
                status = "pending"  # it exists; maybe another run is still copying it
            self._await_copy(target, str(status))

    def _await_copy(self, target: str, status: str) -> None:
        """Wait for a copy; within an account, most are complete at once."""
        until = time.monotonic() + _COPY_SECONDS
        attempt = 0
        while status == "pending" and time.monotonic() < until:
            found = self._properties(target)
            status = str(found.copy.status) if found else "gone"
            if status == "pending":
                _pause(attempt := attempt + 1)
        if status not in ("success", "None"):
            raise ServiceTrouble(
                f"The copy to {self.full(target)} ended with status {status}. There is nothing to "
                "correct; the next sync tries again."
            )

    def each(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        if len(items) < 2:
            return [do(item) for item in items]
        with ThreadPoolExecutor(THREADS) as pool:
            return list(pool.map(do, items))

    def delete(self, path: str) -> None:
        with self._call(path):
            self._delete(self._key(path))

    def _delete(self, key: str) -> None:
        try:
            self.client.delete_blob(key)
        except HttpResponseError as error:
            if not is_missing(error):
                raise

    def delete_folder(self, folder: str) -> None:
        with self._call(folder):
            pages = list(Listing(self.client).pages(self._below(folder)))
            self.each(self._delete, [file.path for page in pages for file in page.files])
            found = self._properties(folder)
            own = [self._key(folder)] if found and _is_directory(found) else []
            self._delete_directories([*own, *(one for page in pages for one in page.directories)])

    def delete_empty_folders(self, folder: str) -> None:
        """Only accounts with hierarchical namespace have folders without files."""
        with self._call(folder):
            pages = list(Listing(self.client).pages(self._below(folder)))
            parents = {_parent(file.path) for page in pages for file in page.files}
            directories = [one for page in pages for one in page.directories]
            self._delete_directories([one for one in directories if one not in parents])

    def _delete_directories(self, keys: Sequence[str]) -> None:
        """Delete directories, the deepest first; those that are not empty stay."""
        for key in sorted(keys, key=lambda key: key.count("/"), reverse=True):
            try:
                self._delete(key)
            except HttpResponseError as error:
                if _code(error) not in ("DirectoryIsNotEmpty", "DirectoryNotEmpty"):
                    raise

    def discard_partial_writes(self, folder: str, run_id: str) -> None:
        """Nothing to do: blocks that are not committed are invisible, and expire after a week."""


def is_missing(error: HttpResponseError) -> bool:
    """Whether the blob (not the container) does not exist."""
    return error.status_code == 404 and _code(error) not in (
        "ContainerNotFound",
        "FilesystemNotFound",
    )


def is_lost(error: HttpResponseError) -> bool:
    """Whether a condition failed: another writer was first."""
    return error.status_code == 412 or _code(error) in ("BlobAlreadyExists", "PathAlreadyExists")


def was_sent_again(error: HttpResponseError) -> bool:
    return bool(getattr(error.response, "sent_again", False))


def _code(error: HttpResponseError) -> str:
    code = getattr(error, "error_code", "")
    return str(getattr(code, "value", code))


def _is_directory(properties: Any) -> bool:
    return bool((properties.metadata or {}).get("hdi_isfolder") == "true")


def _parent(key: str) -> str:
    return key.rpartition("/")[0]


def _pause(attempt: int) -> None:
    """Exponential backoff with jitter."""
    time.sleep(random.uniform(0, min(0.02 * 2**attempt, 1.0)))
