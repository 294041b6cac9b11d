"""A table of the catalog as Glue writes it, there and back."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from eventlake.catalog.base import CatalogColumn, CatalogTable
from eventlake.catalog.glue import comments
from eventlake.catalog.glue.calls import Fields
from eventlake.catalog.glue.places import Root

RETYPED = "datalake.retyped"  # the manifest that last gave columns other types
RETYPING = "datalake.retyping"  # the one that is about to
DROPPED = "datalake.dropped"  # the last one that dropped partitions
_OWN = "datalake."
_PLAIN = frozenset({"EXTERNAL", "classification"})


@dataclass(frozen=True, slots=True)
class _Format:
    input: str
    output: str
    serde: str
    parameters: Mapping[str, str] = field(default_factory=dict)


_FORMATS: Mapping[Literal["parquet", "json"], _Format] = {
    "parquet": _Format(
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
        {"serialization.format": "1"},
    ),
    "json": _Format(
        "org.apache.hadoop.mapred.TextInputFormat",
        "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        "org.openx.data.jsonserde.JsonSerDe",
        {"serialization.format": "1"},
    ),
}


def new_table(table: CatalogTable, root: Root) -> Fields:
    """The input for making a table."""
    how = _FORMATS[table.format]
    return {
        "Name": table.name,
        "Description": comments.fitted(table.comment, comments.TABLE_BYTES),
        "TableType": "EXTERNAL_TABLE",
        "PartitionKeys": [{"Name": key, "Type": "string"} for key in table.partition_keys],
        "Parameters": {
            **table.parameters,
            "EXTERNAL": "TRUE",
            "classification": table.format,
            **comments.kept(table.comment, comments.TABLE_BYTES),
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
    told: Fields = {"Name": column.name, "Type": column.type}
    if column.comment:
        told["Comment"] = comments.fitted(column.comment, comments.COLUMN_BYTES)
    if kept := comments.kept(column.comment, comments.COLUMN_BYTES):
        told["Parameters"] = kept
    return told


def read_table(got: Fields, root: Root) -> CatalogTable | None:
    """A table from Glue's answer; None for what is no table of this lake."""
    storage = got.get("StorageDescriptor", {})
    location = root.relative(storage.get("Location", ""))
    format = _format_of(storage)
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
        comment=comments.original(got.get("Description", ""), parameters, comments.TABLE_BYTES),
        parameters={
            key: value
            for key, value in parameters.items()
            if key not in _PLAIN and not key.startswith(_OWN)
        },
        retyped=_retyped(parameters),
    )


def number(parameters: Mapping[str, str], key: str) -> int:
    """The number of a manifest in a table's parameters; 0 where there is none."""
    return int(parameters.get(key, 0))


def table_input(got: Fields, known: Collection[str]) -> Fields:
    """What Glue said of a table, as it takes it back: whatever others wrote there stays.

    `known` are the fields that it takes; the rest are its own, such as the time of creation.
    """
    return {key: value for key, value in got.items() if key in known and value is not None}


def _read_column(got: Fields) -> CatalogColumn:
    comment = comments.original(
        got.get("Comment", ""), got.get("Parameters", {}), comments.COLUMN_BYTES
    )
    return CatalogColumn(got["Name"], got.get("Type", "string"), comment)


def _format_of(storage: Fields) -> Literal["parquet", "json"] | None:
    serde = storage.get("SerdeInfo", {}).get("SerializationLibrary")
    return next((name for name, how in _FORMATS.items() if how.serde == serde), None)


def _retyped(parameters: Mapping[str, str]) -> int:
    done, under_way = number(parameters, RETYPED), number(parameters, RETYPING)
    return -under_way if under_way > done else done
