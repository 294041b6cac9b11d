"""A partition of the catalog as Glue writes it, there and back."""

from collections.abc import Collection

from eventlake.catalog.base import CatalogPartition
from eventlake.catalog.glue.calls import Fields
from eventlake.catalog.glue.places import Root

VERSION = "datalake.version"
UNKNOWN = -1
"""The version of a partition that somebody else made: any manifest may move it."""

# As Hive and Spark call them, which plan by them.
_ROWS, _BYTES, _FILES = "numRows", "totalSize", "numFiles"


def new_partition(partition: CatalogPartition, like: Fields, root: Root) -> Fields:
    """The input for making a partition; `like` is how its table is stored."""
    return {
        "Values": list(partition.values),
        "StorageDescriptor": {**like, "Location": root.uri(partition.location)},
        "Parameters": _parameters(partition),
    }


def moved_partition(
    partition: CatalogPartition,
    before: Fields,
    like: Fields,
    root: Root,
    known: Collection[str],
) -> Fields:
    """The input for changing one: what others wrote into it stays."""
    taken = {key: value for key, value in before.items() if key in known and value is not None}
    others = {k: v for k, v in before.get("Parameters", {}).items() if k not in _OURS}
    return {
        **taken,
        "Parameters": {**others, **_parameters(partition)},
        "StorageDescriptor": {
            **like,
            **before.get("StorageDescriptor", {}),
            # Files of a moved partition may have columns, and types, that the old ones had not.
            "Columns": like.get("Columns", []),
            "Location": root.uri(partition.location),
        },
    }


def read_partition(got: Fields, root: Root) -> CatalogPartition:
    uri = got.get("StorageDescriptor", {}).get("Location", "")
    parameters = got.get("Parameters", {})
    return CatalogPartition(
        values=tuple(got["Values"]),
        location=root.relative(uri) or uri,
        version=int(parameters.get(VERSION, UNKNOWN)),
        rows=int(parameters.get(_ROWS, 0)),
        bytes=int(parameters.get(_BYTES, 0)),
        files=int(parameters.get(_FILES, 0)),
    )


_OURS = frozenset({VERSION, _ROWS, _BYTES, _FILES})


def _parameters(partition: CatalogPartition) -> dict[str, str]:
    """What is not counted, as of the reports, is not there: nought would be believed."""
    counted = {_ROWS: partition.rows, _BYTES: partition.bytes, _FILES: partition.files}
    return {VERSION: str(partition.version)} | {
        key: str(count) for key, count in counted.items() if partition.files
    }
