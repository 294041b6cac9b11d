"""The embedded catalog's files: what stands in them, how they are read and written."""

from typing import TypeVar

import msgspec

from lake.catalog.base import CatalogPartition, CatalogTable
from lake.errors import StateError
from lake.storage import Storage

FORMAT = 1


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Any of our files: what it says only counts if this version knows its format."""

    format: int = FORMAT


class DatabaseDocument(Document, frozen=True):
    """`database.json`: that the database was made."""

    name: str


class TableDocument(Document, frozen=True):
    """`table.json`: a table with all its columns."""

    table: CatalogTable


class Dropped(msgspec.Struct, frozen=True):
    """A partition that is gone, and the number of the manifest that dropped it."""

    values: tuple[str, ...]
    version: int


class MonthDocument(Document, frozen=True):
    """`partitions/<YYYY-MM>.json`: the partitions of one month, and those it no longer has."""

    partitions: tuple[CatalogPartition, ...] = ()
    dropped: tuple[Dropped, ...] = ()


D = TypeVar("D", bound=Document)


def read_document(storage: Storage, path: str, kind: type[D]) -> D | None:
    """What a file says, or None where there is none."""
    data = storage.read(path)
    return None if data is None else decode_document(path, data, kind)


def decode_document(path: str, data: bytes, kind: type[D]) -> D:
    try:
        # The format first: a newer file need not look like ours in anything else.
        found = msgspec.json.decode(data, type=Document).format
        if found <= FORMAT:
            return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise StateError(
            f"{path} is not a catalog file that can be read ({error}). "
            "Restore it, or remove its table's folder and replay the source."
        ) from error
    raise StateError(
        f"{path} has format {found}, this version of datalake knows up to {FORMAT}. "
        "Use the version that wrote it, or a newer one."
    )


def write_document(storage: Storage, path: str, document: Document) -> None:
    storage.write(path, encode_document(document))


def encode_document(document: Document) -> bytes:
    return msgspec.json.encode(document)
