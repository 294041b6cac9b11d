"""A table of the catalog in the form of Glue, and changes of it that keep concurrent changes."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ClientError

from eventlake.aws.refusals import aws_call
from eventlake.catalog.base import CatalogColumn, CatalogTable, Days
from eventlake.catalog.external import (
    COLUMN_BYTES,
    DROPPED,
    FORMATS,
    RETYPED,
    RETYPING,
    TABLE_BYTES,
    Root,
    attempts,
    fitted,
    format_of,
    number,
    retyped_of,
)
from eventlake.catalog.glue.calls import BUSY, NOT_FOUND, Fields, GlueCalls, code_of

KEPT = "datalake.comment"
"""The parameter with the original comment as JSON, if it had to be changed for Glue."""


def kept(text: str, most: int) -> dict[str, str]:
    """The parameters for a comment that does not fit; empty if it fits."""
    return {} if fitted(text, most) == text else {KEPT: json.dumps(text)}


def original(comment: str, parameters: dict[str, Any], most: int) -> str:
    """The original comment, unless it was changed in Glue."""
    if KEPT in parameters:
        text = str(json.loads(parameters[KEPT]))
        if fitted(text, most) == comment:
            return text
    return comment


def new_table(table: CatalogTable, root: Root) -> Fields:
    """The input for creating a table."""
    how = FORMATS[table.format]
    return {
        "Name": table.name,
        "Description": fitted(table.comment, TABLE_BYTES),
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [{"Name": key, "Type": "string"} for key in table.partition_keys],
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": "parquet" if table.format == "symlink" else table.format,
            **kept(table.comment, TABLE_BYTES),
            **({RETYPED: str(table.retyped)} if table.retyped else {}),
        },
        "StorageDescriptor": {
            "Columns": [new_column(column) for column in table.columns],
            "Location": root.uri(table.location),
            "InputFormat": how.input,
            "OutputFormat": how.output,
            "SerdeInfo": {"SerializationLibrary": how.serde, "Parameters": dict(how.parameters)},
        },
    }


def new_column(column: CatalogColumn) -> Fields:
    entry: Fields = {"Name": column.name, "Type": column.type}
    if column.comment:
        entry["Comment"] = fitted(column.comment, COLUMN_BYTES)
    if parameters := kept(column.comment, COLUMN_BYTES):
        entry["Parameters"] = parameters
    return entry


def read_table(got: Fields, root: Root) -> CatalogTable | None:
    """A table from a response of Glue; None for tables that are not of this lake."""
    storage = got.get("StorageDescriptor", {})
    location = root.relative(storage.get("Location", ""))
    serde = storage.get("SerdeInfo", {}).get("SerializationLibrary")
    format = format_of(serde, storage.get("InputFormat"))
    if location is None or format is None:
        return None
    parameters = got.get("Parameters", {})
    return CatalogTable(
        database=got["DatabaseName"],
        name=got["Name"],
        columns=tuple(map(_read_column, storage.get("Columns", ()))),
        partition_keys=tuple(key["Name"] for key in got.get("PartitionKeys", ())),
        location=location,
        format=format,
        comment=original(got.get("Description", ""), parameters, TABLE_BYTES),
        retyped=retyped_of(parameters),
    )


def table_input(got: Fields, known: Collection[str]) -> Fields:
    """A table from a response as input for an update; fields of other programs stay.

    `known` are the fields that updates accept; Glue adds others, such as the time of creation.
    """
    return {key: value for key, value in got.items() if key in known and value is not None}


def _read_column(got: Fields) -> CatalogColumn:
    comment = original(got.get("Comment", ""), got.get("Parameters", {}), COLUMN_BYTES)
    return CatalogColumn(got["Name"], got.get("Type", "string"), comment)


_SEGMENTS = 8  # Glue offers up to ten per table


def list_partitions(
    calls: GlueCalls, database: str, name: str, expression: str | None
) -> list[Fields]:
    """All partitions that match an expression; in parallel if there is more than one page."""
    arguments: dict[str, Any] = {
        "DatabaseName": database,
        "TableName": name,
        "ExcludeColumnSchema": True,  # it is that of the table, and most of the response
        **({"Expression": expression} if expression else {}),
    }
    about = f"{database}.{name}"
    page = calls.call("get_partitions", about, **arguments)
    if not page.get("NextToken"):
        return _partitions(page)

    def segment(number: int) -> list[Fields]:
        part = {"SegmentNumber": number, "TotalSegments": _SEGMENTS}
        pages = calls.pages("get_partitions", about, Segment=part, **arguments)
        return [one for page in pages for one in _partitions(page)]

    with ThreadPoolExecutor(_SEGMENTS) as pool:
        return [one for found in pool.map(segment, range(_SEGMENTS)) for one in found]


def days_expression(keys: Sequence[str], days: Days | None) -> str | None:
    """An expression for the partitions of some days and few others; Glue compares single keys."""
    if days is None:
        return None
    first, last = days
    if "year" not in keys:
        return _between("day", first, last)
    parts = zip(("year", "month", "day"), first.split("-"), last.split("-"), strict=True)
    conditions = []
    for key, low, high in parts:
        conditions.append(_between(key, low, high))
        if low != high:  # the keys below it go round
            break
    return " AND ".join(conditions)


def _between(key: str, low: str, high: str) -> str:
    return f"{key} = '{low}'" if low == high else f"{key} >= '{low}' AND {key} <= '{high}'"


def _partitions(page: Fields) -> list[Fields]:
    found: list[Fields] = page.get("Partitions", [])
    return found


Change = Callable[[Fields], Fields | None]
"""From the current table to the wanted one; None if nothing has to change."""


def change_table(calls: GlueCalls, database: str, name: str, change: Change) -> None:
    """Change an existing table by one update that keeps concurrent changes.

    Glue refuses the update if the table changed after it was read. Then the change is computed
    again from the current table, and also after a lost response.
    """
    with aws_call(f"{database}.{name}"):
        for last in attempts():
            try:
                got = calls.once("get_table", DatabaseName=database, Name=name)["Table"]
                wanted = change(table_input(got, calls.fields_of("TableInput")))
                if wanted is not None:
                    calls.once(
                        "update_table",
                        DatabaseName=database,
                        TableInput=wanted,
                        VersionId=got["VersionId"],
                        SkipArchive=True,
                    )
                return
            except ClientError as error:
                if last or code_of(error) not in BUSY:
                    raise


def find_table(calls: GlueCalls, database: str, name: str) -> Fields | None:
    """A table as stored in Glue."""
    try:
        got: Fields = calls.call(
            "get_table", f"{database}.{name}", DatabaseName=database, Name=name
        )["Table"]
    except ClientError as error:
        if code_of(error) == NOT_FOUND:
            return None
        raise
    return got


def with_columns(columns: list[CatalogColumn]) -> Change:
    """Append the columns that the table lacks."""

    def change(table: Fields) -> Fields | None:
        known = {column["Name"] for column in table["StorageDescriptor"]["Columns"]}
        new = [new_column(column) for column in columns if column.name not in known]
        return _stored(table, [*_columns(table), *new]) if new else None

    return change


def restored(stored: Fields) -> Change:
    """Restore columns and location; fields of other programs stay."""

    def change(table: Fields) -> Fields | None:
        found = table["StorageDescriptor"]
        wanted = {**found, "Columns": stored["Columns"], "Location": stored["Location"]}
        return {**table, "StorageDescriptor": wanted} if wanted != found else None

    return change


def with_dropped(version: int) -> Change:
    """Record that a manifest drops partitions: earlier manifests create none any more."""

    def change(table: Fields) -> Fields | None:
        if number(table.get("Parameters", {}), DROPPED) >= version:
            return None
        return _noted(table, {DROPPED: str(version)})

    return change


def about_to_retype(version: int) -> Change:
    """Record that types of columns are about to change."""

    def change(table: Fields) -> Fields | None:
        parameters = table.get("Parameters", {})
        if max(number(parameters, RETYPED), number(parameters, RETYPING)) >= version:
            return None
        return _noted(table, {RETYPING: str(version)})

    return change


def with_types(types: Mapping[str, str], version: int) -> Change:
    """Change types of columns, and nothing else."""

    def change(table: Fields) -> Fields | None:
        parameters = table.get("Parameters", {})
        if number(parameters, RETYPED) >= version:
            return None
        under_way = number(parameters, RETYPING)
        done = _noted(table, {RETYPED: str(version)}, {RETYPING} if under_way <= version else ())
        return _stored(done, retyped(_columns(table), types))

    return change


def retyped(columns: list[Fields], types: Mapping[str, str]) -> list[Fields]:
    return [{**column, "Type": types.get(column["Name"], column["Type"])} for column in columns]


def _columns(table: Fields) -> list[Fields]:
    found: list[Fields] = table["StorageDescriptor"].get("Columns", [])
    return found


def _stored(table: Fields, columns: list[Fields]) -> Fields:
    return {**table, "StorageDescriptor": {**table["StorageDescriptor"], "Columns": columns}}


def _noted(table: Fields, notes: Mapping[str, str], over: Collection[str] = ()) -> Fields:
    kept = {k: v for k, v in table.get("Parameters", {}).items() if k not in over}
    return {**table, "Parameters": kept | dict(notes)}
