"""Changes of a table in Glue that lose nothing of what others change at the same time."""

from collections.abc import Callable, Collection, Mapping

from botocore.exceptions import ClientError

from eventlake.aws.refusals import aws_call
from eventlake.catalog.base import CatalogColumn
from eventlake.catalog.glue.calls import BUSY, NOT_FOUND, Fields, GlueCalls, attempts, code_of
from eventlake.catalog.glue.tables import (
    DROPPED,
    RETYPED,
    RETYPING,
    new_column,
    number,
    table_input,
)

Change = Callable[[Fields], Fields | None]
"""From a table as it is to the table as it should be; None where it is so already."""


def change_table(calls: GlueCalls, database: str, name: str, change: Change) -> None:
    """Change a table that exists by one update, on top of whatever it is at that moment.

    Glue refuses the update if the table is no longer the version that was read. Then the change
    is made anew from the table as it is now; so is one whose answer got lost.
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
    """A table as Glue has it."""
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
    """The columns that a table lacks, at its end."""

    def change(table: Fields) -> Fields | None:
        known = {column["Name"] for column in table["StorageDescriptor"]["Columns"]}
        new = [new_column(column) for column in columns if column.name not in known]
        return _stored(table, [*_columns(table), *new]) if new else None

    return change


def restored(stored: Fields) -> Change:
    """The columns and the location that a table should have; what else others wrote there stays."""

    def change(table: Fields) -> Fields | None:
        found = table["StorageDescriptor"]
        wanted = {**found, "Columns": stored["Columns"], "Location": stored["Location"]}
        return {**table, "StorageDescriptor": wanted} if wanted != found else None

    return change


def with_dropped(version: int) -> Change:
    """Note that a manifest drops partitions: none before it makes any from now on."""

    def change(table: Fields) -> Fields | None:
        if number(table.get("Parameters", {}), DROPPED) >= version:
            return None
        return _noted(table, {DROPPED: str(version)})

    return change


def about_to_retype(version: int) -> Change:
    """Note that columns are about to get other types."""

    def change(table: Fields) -> Fields | None:
        parameters = table.get("Parameters", {})
        if max(number(parameters, RETYPED), number(parameters, RETYPING)) >= version:
            return None
        return _noted(table, {RETYPING: str(version)})

    return change


def with_types(types: Mapping[str, str], version: int) -> Change:
    """Other types of columns, whatever else is said of them."""

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
