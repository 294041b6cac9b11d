"""The message ids that show a difference, read from where they stand."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import pyarrow.parquet as pq

from eventlake.audit.archive_rows import RawFile
from eventlake.audit.findings import MISSING, Example
from eventlake.audit.lake_rows import DataFile
from eventlake.columnar.raw_lines import RawLines
from eventlake.rules.events import message_id
from eventlake.rules.names import MESSAGE_ID
from eventlake.rules.parse import parse_line
from eventlake.settings.models.models import Source
from eventlake.storage import Storage


def ids_of(
    storage: Storage,
    source: Source,
    raw: Sequence[RawFile],
    data: Sequence[DataFile],
    examples: Iterable[Example],
) -> dict[Example, str]:
    """The id of each example; every file is opened once."""
    by_file: dict[tuple[bool, int], dict[int, list[Example]]] = {}
    for example in examples:
        file = by_file.setdefault((example.kind == MISSING, example.file), {})
        file.setdefault(example.number, []).append(example)
    found: dict[Example, str] = {}
    for (in_archive, file_number), wanted in by_file.items():
        ids = (
            _raw_ids(storage, source, raw[file_number].path, set(wanted))
            if in_archive
            else _row_ids(storage, source, data[file_number].path, wanted)
        )
        found |= {example: id for number, id in ids for example in wanted[number]}
    return found


def _raw_ids(
    storage: Storage, source: Source, path: str, numbers: set[int]
) -> Iterator[tuple[int, str]]:
    for number, line in RawLines(lambda: storage.open_stream(path), source.limits.line_bytes):
        if number in numbers:
            yield number, message_id(parse_line(line, source.limits)) or sha256(line).hexdigest()
            numbers.discard(number)
            if not numbers:
                return


def _row_ids(
    storage: Storage, source: Source, path: str, numbers: Iterable[int]
) -> Iterator[tuple[int, str]]:
    name = MESSAGE_ID.name(source.naming)
    with storage.open_input(path) as stream:
        ids = pq.ParquetFile(stream, pre_buffer=True).read([name])[name]
    for number in numbers:
        yield number, ids[number].as_py() or ""
