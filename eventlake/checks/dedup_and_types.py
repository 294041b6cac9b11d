"""The checks once more, on what is published: for the button in the UI, and for doubts."""

from collections.abc import Iterator

import pyarrow.parquet as pq

from eventlake.columnar.id_hashes import words
from eventlake.lake import Lake
from eventlake.load.write import type_problems
from eventlake.rules.duplicates import NOTHING, Events, find_twins
from eventlake.rules.types import TableSchema
from eventlake.runs.dedup import read_ids
from eventlake.runs.unit import Window
from eventlake.runs.verify import CheckResult
from eventlake.settings.models import Source

_DAY_US = 86_400_000_000


def check_published(
    lake: Lake, source: Source, schema: TableSchema, window: Window
) -> Iterator[CheckResult]:
    """Read the files of a table's partitions and hold them to the same rules as before."""
    lake = lake.for_source(source)
    days = (f"{window.start:%Y-%m-%d}", f"{window.end:%Y-%m-%d}")
    partitions = [
        partition
        for partition in lake.catalog.partitions(schema.database, schema.name, days)
        if window.start <= source.date_partition.parse(partition.values) < window.end
    ]
    files = [f for p in partitions for f in lake.storage.files(p.location, recursive=False)]
    ids = read_ids(lake.storage, source, files)
    events = Events(words(ids["id"].combine_chunks()), ids["received"].to_numpy())
    doubled = find_twins(events, NOTHING, source.dedup_days * _DAY_US) >= 0
    footers = []
    for file in files:
        with lake.storage.open_input(file.path) as stream:
            footers.append(pq.read_metadata(stream))
    problems = [
        f"{file.name}: {problem}"
        for file, footer in zip(files, footers, strict=True)
        for problem in type_problems(footer.schema.to_arrow_schema(), schema, older=True)
    ]
    rows, promised = sum(f.num_rows for f in footers), sum(p.rows for p in partitions)
    yield CheckResult(
        schema.key,
        "dedup",
        not doubled.any(),
        {"rows": rows, "ids_twice": int(doubled.sum()), "window_days": source.dedup_days},
    )
    yield CheckResult(
        schema.key,
        "types",
        not problems,
        {"files": len(files), "problems": "; ".join(problems[:5])},
    )
    yield CheckResult(
        schema.key, "conservation", rows == promised, {"rows": rows, "published": promised}
    )
