"""A dlt pipeline for the same work: its own inference and flattening, Parquet on the file system.

Runs in an environment of its own. What is done before dlt sees an event spares it work: of copies
only the first is passed on (its `merge` needs a database or Delta), arrays become text (it would
make tables of their own of them), and events come in pages, sorted into tables.
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

from benchmarks.marks import Marks
from benchmarks.peers.raw import arguments, table_name

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
    files, out = arguments()
    pipeline = dlt.pipeline(
        pipeline_name="events",
        pipelines_dir=str(out.with_name("pipelines")),
        destination=dlt.destinations.filesystem(bucket_url=str(out)),
        dataset_name="events",
    )
    marks.is_ready()
    with marks.step("extract"):
        pipeline.extract(dlt.resource(pages(files), name="events"), loader_file_format="parquet")
    with marks.step("normalize"):
        pipeline.normalize()
    with marks.step("load"):
        pipeline.load().raise_on_failed_jobs()
    marks.write()


def pages(files: list[Path]) -> Iterator[Any]:
    """Pages of events with the name of their table."""
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
