"""The same task as a dlt pipeline that infers and flattens, and writes Parquet to the file system.

Runs in its own environment. Some work is done before dlt receives an event: duplicates are dropped
(its `merge` needs a database or Delta), arrays become text (dlt would make child tables of them),
and events arrive in pages, grouped by table.
"""

import gzip
import os
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import dlt
import orjson

from benchmarks.programs.common import Marks, peer_arguments, table_name

WORKERS = 2
PAGE = 20_000
SETTINGS = {
    "RUNTIME__LOG_LEVEL": "ERROR",
    "RUNTIME__DLTHUB_TELEMETRY": "false",
    "NORMALIZE__WORKERS": str(WORKERS),
    "NORMALIZE__DATA_WRITER__DISABLE_COMPRESSION": "true",
    "EXTRACT__DATA_WRITER__FILE_MAX_ITEMS": str(PAGE),
    "LOAD__WORKERS": str(WORKERS),
    "DATA_WRITER__COMPRESSION": "zstd",
}


def main() -> None:
    marks = Marks()
    os.environ.update(SETTINGS)
    files, out = peer_arguments()
    pipeline = dlt.pipeline(
        pipeline_name="events",
        pipelines_dir=str(out.with_name("pipelines")),
        destination=dlt.destinations.filesystem(bucket_url=str(out)),
        dataset_name="events",
    )
    marks.set_ready()
    with marks.step("extract"):
        pipeline.extract(dlt.resource(pages(files), name="events"), loader_file_format="parquet")
    with marks.step("normalize"):
        pipeline.normalize()
    with marks.step("load"):
        pipeline.load().raise_on_failed_jobs()
    marks.write()


def pages(files: list[Path]) -> Iterator[Any]:
    """Pages of events, each with the name of its table."""
    seen: set[str] = set()
    lines = (line for file in files for line in _lines(file))
    while page := list(islice(lines, PAGE)):
        tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in page:
            event = orjson.loads(line)
            if event["messageId"] not in seen:
                seen.add(event["messageId"])
                arrays_as_text(event)
                tables[table_name(event["type"], event.get("event"))].append(event)
        for name, events in tables.items():
            yield dlt.mark.with_table_name(events, name)


def arrays_as_text(value: dict[str, Any]) -> None:
    for key, inner in value.items():
        if isinstance(inner, dict):
            arrays_as_text(inner)
        elif isinstance(inner, list):
            value[key] = orjson.dumps(inner).decode()


def _lines(file: Path) -> Iterator[bytes]:
    with gzip.open(file) as lines:
        yield from lines


if __name__ == "__main__":
    main()
