"""Tables and partitions of the catalog as a Hive metastore has them, there and back.

Databases of metastores may hold Latin-1 only, comments of columns 256 characters, parameters 4,000.
So comments are cut and written in ASCII, and kept whole in parameters, in pieces.
"""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pymetastore.hive_metastore.ttypes import (
    FieldSchema,
    Partition,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

from eventlake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable
from eventlake.catalog.external import (
    COLUMN_BYTES,
    FORMATS,
    RETYPED,
    TABLE_BYTES,
    Root,
    fitted,
    format_of,
    partition_of,
    partition_parameters,
    retyped_of,
)

_PIECE = 3_900  # characters
_COMMENT = "comment"  # Hive's own parameter
_COMMENTS = "datalake.comments"
"""Comments that had to be changed for Hive, by column; that of the table by an empty name."""
_COLUMNS = "datalake.columns"
"""All columns of a table, while it shows only some of them: see `cut_columns`."""

Parameters = dict[str, str]


def with_document(parameters: Mapping[str, str], key: str, value: Any) -> Parameters:
    """The parameters with a JSON value in pieces; a false value removes it."""
    others = {k: v for k, v in parameters.items() if not k.startswith(f"{key}.")}
    text = json.dumps(value) if value else ""
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    return others | {f"{key}.{index}": piece for index, piece in enumerate(pieces)}


def document(parameters: Mapping[str, str], key: str) -> Any:
    """The JSON value; None if there is none."""
    pieces = {
        k.removeprefix(f"{key}."): v for k, v in parameters.items() if k.startswith(f"{key}.")
    }
    text = "".join(pieces[index] for index in sorted(pieces, key=int))
    return json.loads(text) if text else None


def new_table(table: CatalogTable, root: Root) -> Table:
    """The table as the metastore takes it."""
    parameters = {
        "EXTERNAL": "TRUE",
        "classification": "parquet" if table.format == "symlink" else table.format,
    }
    if table.comment:
        parameters[_COMMENT] = fitted(table.comment, TABLE_BYTES, ascii_only=True)
    if table.retyped:
        parameters[RETYPED] = str(table.retyped)
    comments = changed_comments(table.columns)
    if parameters.get(_COMMENT, "") != table.comment:
        comments[""] = table.comment
    how = FORMATS[table.format]
    return Table(
        dbName=table.database,
        tableName=table.name,
        tableType="EXTERNAL_TABLE",
        partitionKeys=[FieldSchema(key, "string") for key in table.partition_keys],
        parameters=with_document(parameters, _COMMENTS, comments),
        sd=StorageDescriptor(
            cols=[new_column(column) for column in table.columns],
            location=root.uri(table.location).rstrip("/"),
            inputFormat=how.input,
            outputFormat=how.output,
            serdeInfo=SerDeInfo(serializationLib=how.serde, parameters=dict(how.parameters)),
            bucketCols=[],
            sortCols=[],
            parameters={},
        ),
    )


def new_column(column: CatalogColumn) -> FieldSchema:
    comment = fitted(column.comment, COLUMN_BYTES, ascii_only=True)
    return FieldSchema(column.name, column.type, comment or None)


def changed_comments(columns: Iterable[CatalogColumn]) -> dict[str, str]:
    """Comments that do not fit, by column."""
    return {
        column.name: column.comment
        for column in columns
        if fitted(column.comment, COLUMN_BYTES, ascii_only=True) != column.comment
    }


def keep_comments(table: Table, comments: Mapping[str, str]) -> None:
    """Keep more comments that do not fit."""
    if comments:
        kept = (document(table.parameters, _COMMENTS) or {}) | dict(comments)
        table.parameters = with_document(table.parameters, _COMMENTS, kept)


def read_table(got: Table, root: Root) -> CatalogTable | None:
    """A table from the metastore's; None for what is no table of this lake."""
    stored = got.sd
    location = root.relative(stored.location or "") if stored else None
    format = (
        format_of(stored.serdeInfo.serializationLib, stored.inputFormat)
        if stored and stored.serdeInfo
        else None
    )
    if location is None or format is None:
        return None
    parameters = got.parameters or {}
    kept: dict[str, str] = document(parameters, _COMMENTS) or {}
    return CatalogTable(
        database=got.dbName,
        name=got.tableName,
        columns=tuple(_read_column(column, kept) for column in columns_of(got)),
        partition_keys=tuple(key.name for key in got.partitionKeys or ()),
        location=location,
        format=format,
        comment=_original(parameters.get(_COMMENT), kept.get(""), TABLE_BYTES),
        retyped=retyped_of(parameters),
    )


def _read_column(got: FieldSchema, kept: Mapping[str, str]) -> CatalogColumn:
    comment = _original(got.comment, kept.get(got.name), COLUMN_BYTES)
    return CatalogColumn(got.name, got.type, comment)


def _original(comment: str | None, kept: str | None, most: int) -> str:
    """The original comment, unless it was changed in the metastore."""
    if kept is not None and fitted(kept, most, ascii_only=True) == comment:
        return kept
    return comment or ""


def columns_of(got: Table) -> list[FieldSchema]:
    """All columns of a table, also while it shows only some of them."""
    saved: list[tuple[str, str, str | None]] | None = document(got.parameters or {}, _COLUMNS)
    return list(got.sd.cols) if saved is None else [FieldSchema(*one) for one in saved]


def put_columns(table: Table, columns: Sequence[FieldSchema]) -> None:
    """Give a table these columns."""
    table.sd.cols = list(columns)
    table.parameters = with_document(table.parameters, _COLUMNS, None)


def cut_columns(
    table: Table, columns: Sequence[FieldSchema], wanted: Sequence[FieldSchema]
) -> None:
    """Leave out columns from the first one that changes its type.

    Metastores refuse to turn a string into a number in one step. They compare columns by their
    position, so those columns go and come back.
    """
    pairs = zip(columns, wanted, strict=False)
    first = next(index for index, (now, then) in enumerate(pairs) if now.type != then.type)
    saved = [(column.name, column.type, column.comment) for column in columns]
    table.parameters = with_document(table.parameters, _COLUMNS, saved)
    table.sd.cols = list(columns[:first])


def new_partition(partition: CatalogPartition, table: Table, root: Root) -> Partition:
    """The partition as the metastore takes it, with the columns of its table."""
    return Partition(
        dbName=table.dbName,
        tableName=table.tableName,
        values=list(partition.values),
        sd=_stored(table.sd, table, partition, root),
        parameters=partition_parameters(partition),
    )


def moved_partition(
    partition: CatalogPartition, before: Partition, table: Table, root: Root
) -> Partition:
    """The changed partition: what others wrote into it stays."""
    moved = copy.copy(before)
    # Files of a moved partition may have columns, and types, that the old ones had not.
    moved.sd = _stored(before.sd, table, partition, root)
    moved.parameters = partition_parameters(partition, before.parameters)
    return moved


def _stored(
    like: StorageDescriptor, table: Table, partition: CatalogPartition, root: Root
) -> StorageDescriptor:
    stored = copy.copy(like)
    stored.cols = columns_of(table)
    stored.location = root.uri(partition.location).rstrip("/")
    return stored


def read_partition(got: Partition, root: Root) -> CatalogPartition:
    return partition_of(tuple(got.values), got.sd.location or "", got.parameters or {}, root)
