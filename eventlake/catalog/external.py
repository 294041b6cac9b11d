"""What external catalogs have in common: formats, comments, and the lake's own parameters.

Whatever manifests must know of each other is in the catalog itself: each partition has the number
of the manifest that put it there, each table that of the last one which dropped partitions.
"""

import random
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from eventlake.catalog.base import CatalogPartition, Format

_ATTEMPTS = 12
_FIRST, _LONGEST = 0.1, 5.0


def attempts() -> Iterator[bool]:
    """Yield whether the attempt is the last one, with growing pauses: half a minute in total."""
    for number in range(_ATTEMPTS):
        if number:
            # Random waits: callers that collide must not retry in step.
            time.sleep(random.uniform(0.5, 1) * min(_FIRST * 2 ** (number - 1), _LONGEST))
        yield number == _ATTEMPTS - 1


_SCHEME = re.compile(r"\A(?:s3[an]?|abfss|file):/+")
_S3 = re.compile(r"\As3[an]://")
_FILE = re.compile(r"\Afile:/+")


@dataclass(frozen=True, slots=True)
class Root:
    """The location of the lake: a folder or a URI."""

    place: str

    def uri(self, path: str) -> str:
        """The URI of a folder with a slash at its end: Athena treats it as a prefix."""
        if _SCHEME.match(path):
            return path
        place = f"file://{self.place}" if self.place.startswith("/") else self.place
        return f"{place.rstrip('/')}/{path}/"

    def relative(self, uri: str) -> str | None:
        """The path of a folder below the root; None for folders elsewhere."""
        plain = _S3.sub("s3://", _FILE.sub("/", uri)).rstrip("/")
        start = f"{self.place.rstrip('/')}/"
        return plain.removeprefix(start) if plain.startswith(start) else None


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes by which Hive, and engines that read its tables, know a format."""

    input: str
    output: str
    serde: str
    parameters: Mapping[str, str] = field(default_factory=dict)


_PARQUET_SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
FORMATS: Mapping[Format, Classes] = {
    "parquet": Classes(
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        _PARQUET_SERDE,
        {"serialization.format": "1"},
    ),
    "symlink": Classes(
        "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat",
        "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        _PARQUET_SERDE,
        {"serialization.format": "1"},
    ),
    "json": Classes(
        "org.apache.hadoop.mapred.TextInputFormat",
        "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        "org.openx.data.jsonserde.JsonSerDe",
        {"serialization.format": "1"},
    ),
}


def format_of(serde: str | None, input: str | None) -> Format | None:
    """The format of these classes; None for formats of others."""
    if serde == _PARQUET_SERDE and input == FORMATS["symlink"].input:
        return "symlink"
    return next((name for name, how in FORMATS.items() if how.serde == serde), None)


COLUMN_BYTES = 255
TABLE_BYTES = 2048


def fitted(text: str, most: int, *, ascii_only: bool = False) -> str:
    """The text on one line, cut to a number of bytes."""
    escaped = "".join(char if _is_plain(char, ascii_only) else _escaped(char) for char in text)
    if len(escaped.encode()) <= most:
        return escaped
    end = "..." if ascii_only else "…"
    return escaped.encode()[: most - len(end.encode())].decode(errors="ignore") + end


def _is_plain(char: str, ascii_only: bool) -> bool:
    return char == "\t" or (
        char >= " " and char not in "\ufffe\uffff" and not (ascii_only and char > "~")
    )


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}"


LAKE = "datalake.lake"  # of databases that a lake created: the location of the lake
RETYPED = "datalake.retyped"  # the manifest that last changed types of columns
RETYPING = "datalake.retyping"  # the manifest that is about to
DROPPED = "datalake.dropped"  # the last manifest that dropped partitions
VERSION = "datalake.version"  # of a partition: the manifest that put it there
UNKNOWN = -1
"""The version of a partition that datalake did not create: any manifest may move it."""

# The names that Hive and Spark use for planning.
_ROWS, _BYTES, _FILES = "numRows", "totalSize", "numFiles"
_OURS = frozenset({VERSION, _ROWS, _BYTES, _FILES})


def number(parameters: Mapping[str, str], key: str) -> int:
    """The number of a manifest in the parameters of a table; 0 if there is none."""
    return int(parameters.get(key, 0))


def retyped_of(parameters: Mapping[str, str]) -> int:
    """`CatalogTable.retyped` from a table's parameters."""
    done, under_way = number(parameters, RETYPED), number(parameters, RETYPING)
    return -under_way if under_way > done else done


def partition_parameters(
    partition: CatalogPartition, before: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The parameters of a partition; those of other programs stay.

    Unknown counts (of reports) are left out: engines would believe a zero.
    """
    others = {k: v for k, v in (before or {}).items() if k not in _OURS}
    counted = {_ROWS: partition.rows, _BYTES: partition.bytes, _FILES: partition.files}
    counts = {key: str(count) for key, count in counted.items() if partition.files}
    return {**others, VERSION: str(partition.version), **counts}


def partition_of(
    values: tuple[str, ...], uri: str, parameters: Mapping[str, str], root: Root
) -> CatalogPartition:
    return CatalogPartition(
        values=values,
        location=root.relative(uri) or uri,
        version=int(parameters.get(VERSION, UNKNOWN)),
        rows=int(parameters.get(_ROWS, 0)),
        bytes=int(parameters.get(_BYTES, 0)),
        files=int(parameters.get(_FILES, 0)),
    )


def is_outdated(before: CatalogPartition, wanted: CatalogPartition) -> bool:
    """Whether a partition of the catalog is to be changed to the wanted one."""
    shown = msgspec.structs.replace(wanted, held=())
    return shown.version >= before.version and shown != before
