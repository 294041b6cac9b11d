"""Reads the pages of a Parquet file without a library: their order, sizes and encodings."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from pyarrow import BufferReader

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
