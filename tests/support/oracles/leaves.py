"""JSON values as leaves, and independent readers of data files."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pyarrow import BufferReader

from eventlake.catalog.base import CatalogColumn, CatalogPartition, CatalogTable
from eventlake.catalog.local import LocalCatalog
from eventlake.rules import paths
from eventlake.rules.parse import parse_value
from eventlake.sql import LakeSql
from eventlake.storage import Storage
from tests.support.servers.hive import (
    Hive,
    add_columns,
    add_partition,
    create_table,
    move_partition,
)


def numbers(most_digits: int, most_places: int) -> SearchStrategy[str]:
    """Numbers as JSON spells them, with up to about this many digits on each side of the point."""
    digits = st.one_of(
        st.text("0123456789", min_size=1, max_size=most_digits),
        # All nines are carried by rounding, fives are halves.
        st.builds(lambda digit, n: digit * n, st.sampled_from("0159"), st.integers(1, most_digits)),
    )
    places = st.one_of(
        st.text("0123456789", max_size=most_places),
        st.builds(lambda digit, n: digit * n, st.sampled_from("059"), st.integers(0, most_places)),
        st.builds(
            lambda lead, end: lead + end,
            st.text("0129", max_size=6),
            st.sampled_from(["5", "50", "51", "49"]),
        ),
    )
    return st.builds(
        lambda sign, whole, part: f"{sign}{whole.lstrip('0') or '0'}{'.' * bool(part)}{part}",
        st.sampled_from(["", "-"]),
        digits,
        places,
    )


PLAIN_NUMBERS = st.one_of(numbers(5, 8), numbers(33, 7), numbers(21, 19))
EXPONENTS = st.builds(
    lambda number, e, sign, power: f"{number}{e}{sign}{power}",
    numbers(4, 4),
    st.sampled_from("eE"),
    st.sampled_from(["", "+", "-"]),
    st.sampled_from([0, 1, 3, 6, 7, 18, 31, 32, 33, 400]),
)
INTEGERS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**32 - 1, 10**32, 10**40]),
)
DAYS = st.one_of(
    st.dates().map(str),
    st.sampled_from([
        "0000-01-01", "0001-01-01", "9999-12-31", "2026-02-29", "2026-02-30", "2024-02-29",
        "1970-01-01", "2026-13-01", "2026-00-10", "2026-10-00", "1900-02-29", "2000-02-29",
        "20261001", "2026-1-1",
    ]),
)  # fmt: skip
CLOCKS = st.one_of(
    st.times().map(lambda t: f"{t:%H:%M:%S}"),
    st.sampled_from([
        "00:00:00", "23:59:59", "23:59:60", "24:00:00", "12:60:00", "12:00", "7:00:00", "12",
        "120000",
    ]),
)  # fmt: skip
FRACTIONS = st.one_of(
    st.just(""),
    st.text("0123456789", min_size=1, max_size=9).map(lambda digits: f".{digits}"),
    st.sampled_from([".", ",5", ".000000000", ".123456000", ".1234560001"]),
)
ZONES = st.sampled_from(
    ["", "Z", "z", "+02:00", "-02:00", "+0200", "+02", "+14:00", "-23:59", "+24:00", " Z", "UTC"]
)
DATES = st.one_of(
    DAYS,
    st.builds(
        lambda day, gap, clock, fraction, zone: f"{day}{gap}{clock}{fraction}{zone}",
        DAYS,
        st.sampled_from(["T", "T", "T", "t", " ", "  "]),
        CLOCKS,
        FRACTIONS,
        ZONES,
    ),
)


def plain_dates(gap: str, zone: str, places: int) -> SearchStrategy[str]:
    """Date-times of one form, as one producer writes them."""
    return st.builds(
        lambda day, clock, part: f"{day}{gap}{clock}{f'.{part:0{places}}' if places else ''}{zone}",
        st.dates(),
        st.times().map(lambda t: f"{t:%H:%M:%S}"),
        st.integers(0, 10 ** max(places, 1) - 1),
    )


TEXTS = st.one_of(
    st.sampled_from(["", " ", "true", "False", "TRUE", "null", "NaN", "[1]", "\0", "😀", "007"]),
    st.text(max_size=6).filter(lambda text: text.isascii() or text.isprintable()),
    PLAIN_NUMBERS,
    EXPONENTS,
    DATES,
)
SCALARS: SearchStrategy[Any] = st.one_of(
    INTEGERS, PLAIN_NUMBERS.map(parse_value), EXPONENTS.map(parse_value), st.booleans(), TEXTS
)
ARRAYS = st.recursive(
    st.lists(st.one_of(st.none(), SCALARS), max_size=3),
    lambda inner: st.lists(
        st.one_of(inner, st.dictionaries(st.text(max_size=3), SCALARS, max_size=2)), max_size=2
    ),
    max_leaves=4,
)
ANY = st.one_of(SCALARS, ARRAYS)


def column_of(values: SearchStrategy[Any]) -> SearchStrategy[list[Any]]:
    """Values of one kind, so that a column of nothing else takes the fast way."""
    return st.lists(values, min_size=1, max_size=6)


COLUMNS: SearchStrategy[list[Any]] = st.one_of(
    column_of(ANY),
    column_of(st.integers(-(2**63), 2**63 - 1)),
    column_of(INTEGERS),
    column_of(st.booleans()),
    column_of(TEXTS),
    column_of(ARRAYS),
    column_of(PLAIN_NUMBERS.map(parse_value)),
    column_of(numbers(32, 6).map(parse_value)),
    column_of(numbers(19, 18).map(parse_value)),
    column_of(st.one_of(PLAIN_NUMBERS, EXPONENTS).map(parse_value)),
    column_of(DATES),
    column_of(DAYS),
    column_of(plain_dates("T", "Z", 3)),
    st.tuples(
        st.sampled_from("T "), st.sampled_from(["", "Z", "+02:00"]), st.integers(0, 9)
    ).flatmap(lambda form: column_of(st.one_of(plain_dates(*form), plain_dates(*form), DAYS))),
)


def json_of(value: Any) -> str:
    """A value as JSON, numbers as they were written."""
    return msgspec.json.encode(value).decode()


_SPACE = st.sampled_from(["", "", "", "", " ", "\t", " \r "])
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@st.composite
def spelled(draw: DrawFn, value: Any, tidy: bool = False) -> str:
    """A value as JSON text; objects are dicts or, where keys stand twice, lists of pairs."""
    if tidy:
        return msgspec.json.encode(value).decode()
    if isinstance(value, str):
        return draw(_text(value))
    if isinstance(value, dict):
        members = [
            f"{draw(_SPACE)}{draw(_text(key))}{draw(_SPACE)}:{draw(_SPACE)}{draw(spelled(inner))}"
            for key, inner in value.items()
        ]
        return "{" + f"{draw(_SPACE)},".join(members) + draw(_SPACE) + "}"
    if isinstance(value, list):
        inner = [draw(_SPACE) + draw(spelled(item)) + draw(_SPACE) for item in value]
        return "[" + ",".join(inner) + draw(_SPACE) + "]"
    return msgspec.json.encode(value).decode()


def _text(text: str) -> SearchStrategy[str]:
    return st.tuples(*(_character(c) for c in text)).map(lambda parts: f'"{"".join(parts)}"')


def _character(c: str) -> SearchStrategy[str]:
    escaped = [json.dumps(c)[1:-1], json.dumps(c)[1:-1].upper().replace("\\U", "\\u")]
    if len(escaped[1]) < 6:
        escaped[1] = f"\\u{ord(c):04X}"
    if c == "/":
        escaped.append("\\/")
    if c in _SHORT or ord(c) < 0x20:
        return st.sampled_from([*escaped, _SHORT.get(c, f"\\u{ord(c):04x}")])
    return st.sampled_from([c, c, c, c, c, c, *escaped])


TYPES = {0: "data", 2: "dictionary"}
_PLAIN, _RLE_DICTIONARY = 0, 8


class Page(NamedTuple):
    kind: str
    unpacked: int
    packed: int
    header: int
    values: int
    encoding: int


@dataclass
class _Compact:
    """Reads structs of numbers and structs in Thrift's compact protocol."""

    data: bytes
    at: int

    def varint(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        field = 0
        while (head := self.data[self.at]) != 0:
            self.at += 1
            field += head >> 4
            fields[field] = self.struct() if head & 15 == 12 else self.varint() >> 1
        self.at += 1
        return fields


def page_at(data: bytes, at: int) -> Page:
    reader = _Compact(data, at)
    header = reader.struct()
    page = header[7] if header[1] == 2 else header[5]
    return Page(TYPES[header[1]], header[2], header[3], reader.at - at, page[1], page[2])


def check_chunks(data: bytes) -> None:
    """Chunks lie one after the other, and their metadata agree with their pages."""
    metadata = pq.read_metadata(BufferReader(data))
    assert metadata.num_row_groups == 1
    group = metadata.row_group(0)
    at, unpacked = 4, 0
    for number in range(metadata.num_columns):
        chunk = group.column(number)
        assert chunk.num_values == metadata.num_rows
        begin, size = at, 0
        encodings = {"PLAIN", "RLE"}
        if chunk.has_dictionary_page:
            assert chunk.dictionary_page_offset == at
            page = page_at(data, at)
            assert (page.kind, page.encoding) == ("dictionary", _PLAIN)
            size += page.header + page.unpacked
            at += page.header + page.packed
            encodings.add("RLE_DICTIONARY")
        assert chunk.data_page_offset == at
        wanted = _RLE_DICTIONARY if chunk.has_dictionary_page else _PLAIN
        values = 0
        while values < metadata.num_rows:
            page = page_at(data, at)
            assert (page.kind, page.encoding) == ("data", wanted)
            values += page.values
            size += page.header + page.unpacked
            at += page.header + page.packed
        assert values == metadata.num_rows
        assert chunk.total_compressed_size == at - begin
        assert chunk.total_uncompressed_size == size
        assert set(chunk.encodings) == encodings
        unpacked += chunk.total_uncompressed_size
    assert group.total_byte_size == unpacked
    assert at == len(data) - 8 - int.from_bytes(data[-8:-4], "little")


DAY = "2026-10-01"


class SharedTable:
    """A table `shop.<name>` by day and hour; every change goes to both catalogs."""

    def __init__(self, hive: Hive, storage: Storage, name: str, schema: pa.Schema) -> None:
        self.hive, self.storage, self.name = hive, storage, name
        self.catalog = LocalCatalog(storage)
        self.lake = LakeSql(self.catalog, storage)
        columns = tuple(CatalogColumn(f.name, HIVE_TYPES[f.type]) for f in schema)
        location = paths.table_folder("S1", name)
        self.table = CatalogTable("shop", name, columns, ("day", "hr"), location)
        self.catalog.create_table(self.table)
        hive.sql("CREATE DATABASE IF NOT EXISTS shop")
        hive.sql(create_table(self.table, storage))

    def put(self, hr: str, rows: pa.Table, run: str | None = None, file: str = "a") -> None:
        """Write a file into the partition's folder, or the partition into the folder of a run."""
        partition = f"day={DAY}/hr={hr}"
        location = (
            paths.version_folder("S1", run, self.name, partition)
            if run
            else paths.partition_folder("S1", self.name, partition)
        )
        with self.storage.open_output(f"{location}/{file}.parquet") as out:
            pq.write_table(rows, out, compression="zstd", store_schema=False)
        known = {p.values for p in self.catalog.partitions("shop", self.name)}
        entry = CatalogPartition((DAY, hr), location, version=int(run or 0))
        change = move_partition if entry.values in known else add_partition
        self.hive.sql(change(self.table, entry, self.storage))
        self.catalog.put_partitions("shop", self.name, [entry])

    def grow(self, name: str, kind: pa.DataType) -> None:
        column = CatalogColumn(name, HIVE_TYPES[kind])
        self.hive.sql(add_columns(self.table, [column]))
        self.catalog.append_columns("shop", self.name, [column])

    def by_spark(self) -> pa.Table:
        return self.hive.sql(f"SELECT * FROM shop.{self.name} ORDER BY message_id")

    def by_duckdb(self) -> pa.Table:
        return self.lake.query(f"SELECT * FROM shop.{self.name} ORDER BY message_id")

    def by_pyarrow(self) -> pa.Table:
        pieces = []
        for partition in self.catalog.partitions("shop", self.name):
            for file in self.storage.files(partition.location):
                piece = pq.read_table(self.storage.full(file.path), partitioning=None)
                for key, value in zip(("day", "hr"), partition.values, strict=True):
                    piece = piece.append_column(key, pa.array([value] * len(piece), pa.string()))
                pieces.append(piece)
        whole = pa.concat_tables(pieces, promote_options="default")
        names = [column.name for table in self.catalog.tables("shop") for column in table.columns]
        return whole.select([*names, "day", "hr"]).sort_by("message_id")


HIVE_TYPES = {
    pa.string(): "string",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.decimal128(38, 6): "decimal(38,6)",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
}
