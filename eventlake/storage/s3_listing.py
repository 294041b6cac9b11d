"""Listing a bucket: a thousand keys per page, pages in parallel.

botocore looks up the description of every field of every object. For a hundred pages, that takes
seconds in which no other thread runs; reading the XML directly takes a quarter of a second. Pages
that this parser does not handle are read by botocore, with the same result.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

from eventlake.storage.base import THREADS, StoredFile

_EVENT = "before-parse.s3.ListObjectsV2"
_SPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
_CONTENTS, _KEY, _SIZE, _ETAG, _MODIFIED = (
    f"{_SPACE}{name}" for name in ("Contents", "Key", "Size", "ETag", "LastModified")
)


def read_pages_quickly(client: Any) -> None:
    """Register the fast parser with a client. Idempotent."""
    client.meta.events.register(_EVENT, _read, unique_id="datalake-pages")


def _read(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    if response_dict["status_code"] != 200:
        return
    page = ElementTree.fromstring(response_dict["body"])
    found = page.findall(_CONTENTS)
    if not found:
        return  # for example, from servers with another XML namespace
    customized_response_dict["Contents"] = [
        {
            "Key": one.findtext(_KEY, ""),
            "Size": int(one.findtext(_SIZE, "0")),
            "ETag": one.findtext(_ETAG, ""),
            "LastModified": one.findtext(_MODIFIED, ""),
        }
        for one in found
    ]
    for one in found:
        page.remove(one)
    response_dict["body"] = ElementTree.tostring(page)


_PARTS = 2 * THREADS


@dataclass(frozen=True, slots=True)
class Listing:
    """Lists one bucket; the path of a file is its key."""

    client: Any
    bucket: str

    def __post_init__(self) -> None:
        read_pages_quickly(self.client)

    def any(self, prefix: str) -> bool:
        """Whether there is any object with this prefix."""
        page = self.client.list_objects_v2(Bucket=self.bucket, Prefix=prefix, MaxKeys=1)
        return bool(page.get("KeyCount"))

    def flat(self, prefix: str) -> list[StoredFile]:
        """The objects directly in a folder."""
        return [found for page in self._pages(prefix, Delimiter="/") for found in _objects(page)]

    def folders(self, prefix: str, after: str = "") -> list[str]:
        """The prefixes of the folders directly in a folder, after a key."""
        return [
            folder["Prefix"]
            for page in self._pages(prefix, Delimiter="/", StartAfter=after)
            for folder in page.get("CommonPrefixes", ())
        ]

    def deep(self, prefix: str) -> list[StoredFile]:
        """All objects below a prefix; long listings are split into key ranges, listed in parallel.

        A range spans several folders, so this takes hardly more requests than a sequential listing.
        """
        first = next(self._pages(prefix))
        found = _objects(first)
        if not first.get("IsTruncated"):
            return found
        begin = found[-1].path
        folders = [folder for folder in self.folders(prefix, begin) if folder > begin]
        step = -(-len(folders) // _PARTS) or 1
        edges: list[str | None] = [begin, *folders[step::step], None]
        with ThreadPoolExecutor(THREADS) as pool:
            for part in pool.map(lambda edge: self._part(prefix, *edge), pairwise(edges)):
                found += part
        return found

    def _part(self, prefix: str, after: str | None, end: str | None) -> list[StoredFile]:
        part: list[StoredFile] = []
        for page in self._pages(prefix, StartAfter=after or ""):
            found = _objects(page)
            if end is not None and found and found[-1].path >= end:
                part += (one for one in found if one.path < end)
                break
            part += found
        return part

    def _pages(self, prefix: str, **more: str) -> Iterator[dict[str, Any]]:
        given = {name: value for name, value in more.items() if value}
        pages = self.client.get_paginator("list_objects_v2")
        return iter(pages.paginate(Bucket=self.bucket, Prefix=prefix, **given))


def _objects(page: dict[str, Any]) -> list[StoredFile]:
    return [
        StoredFile(one["Key"], one["Size"], one["ETag"].strip('"'), _nanoseconds(one))
        for one in page.get("Contents", ())
    ]


def _nanoseconds(one: dict[str, Any]) -> int:
    modified = one["LastModified"]
    read = datetime.fromisoformat(modified) if isinstance(modified, str) else modified
    return int(read.timestamp() * 1000) * 1_000_000
