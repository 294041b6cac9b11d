"""`python -m benchmarks.limits`: what one more of each thing costs the driver, or a single task."""

import multiprocessing
import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from eventlake.columnar.id_hashes import words
from eventlake.columnar.kinds import Kind
from eventlake.load.positions import places
from eventlake.load.record_log import DUPLICATE, OTHER_PAYLOAD
from eventlake.load.seen import Seen, SeenColumn, SeenTable
from eventlake.rules.duplicates import Events, find_twins
from eventlake.runs.record_log import _not_loaded
from eventlake.state.id_index import SCHEMA, read_index, write_index
from eventlake.state.ledger import LedgerEntry, LedgerPage
from eventlake.storage import LocalStorage
from eventlake.storage.documents import decode, encode

Work = Callable[[], Callable[[], object]]
"""What is made first, and what is measured then."""


class Cost(NamedTuple):
    """Of one thing among many."""

    what: str
    where: str
    things: int
    bytes: float
    microseconds: float


def main() -> None:
    table = Table(title="What one more costs", title_justify="left")
    for head in ("one more", "where", "measured with", "memory", "time"):
        table.add_column(head, justify="left" if head in ("one more", "where") else "right")
    for cost in (ids_looked_back_on(), duplicates(), fields_seen(), raw_files_known()):
        size, took = f"{cost.bytes:,.0f} bytes", f"{cost.microseconds:.3g} µs"
        table.add_row(cost.what, cost.where, f"{cost.things:,}", size, took)
    Console(width=120).print(table)


def ids_looked_back_on(count: int = 4_000_000) -> Cost:
    """A dedup task reads its share of all ids within the window."""

    def prepared() -> Callable[[], object]:
        folder = TemporaryDirectory()
        storage = LocalStorage(folder.name)
        raw = np.random.default_rng(1).bytes(16 * count)
        ids = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), count, [None, pa.py_buffer(raw)])
        received, payload = np.zeros(count, np.int64), np.zeros(count, np.uint32)
        columns = [ids, pa.array(received), pa.array(payload)]
        files = list(write_index(storage, "s", "u", pa.Table.from_arrays(columns, schema=SCHEMA)))
        few = Events(words(ids[:1000]), received[:1000], np.arange(1000))

        def work() -> object:
            kept = folder  # until this is done
            lake = read_index(storage, files)
            return kept, find_twins(few, Events(lake.ids, lake.received), 7)

        return work

    return _measured("id in the days looked back on", "a dedup task", count, prepared)


def duplicates(count: int = 1_000_000) -> Cost:
    """The driver hands the places of what was not loaded to the tasks that log it."""

    def prepared() -> Callable[[], object]:
        numbers = np.arange(count)
        at = places(numbers % 100, numbers)
        by_reason = {DUPLICATE: at[10:], OTHER_PAYLOAD: at[:10]}
        files = [SimpleNamespace(path=f"{n}.gz") for n in range(100)]
        work: Any = SimpleNamespace(unit=SimpleNamespace(files=files))
        return lambda: _not_loaded(work, by_reason)

    return _measured("duplicate or rejected row", "the driver", count, prepared)


def fields_seen(tasks: int = 200, tables: int = 60, columns: int = 50) -> Cost:
    """Every staging task tells which fields it saw; the driver resolves columns from that."""
    fields = [
        SeenColumn(
            f"/properties/field_{n}", f"properties_field_{n}", (1, n, n), frozenset({Kind.TEXT})
        )
        for n in range(columns)
    ]
    told = Seen([SeenTable(f"track_{n}", f"Event {n}", (1, n, 0), fields) for n in range(tables)])

    def prepared() -> Callable[[], object]:
        data = told.encode()
        return lambda: Seen.merge([Seen.decode(data) for _ in range(tasks)])

    what = "field of a table seen by a task"
    return _measured(what, "the driver", tasks * tables * columns, prepared)


def raw_files_known(count: int = 200_000) -> Cost:
    """A sync holds the archive's listing to all that the ledger has."""
    entries = (
        LedgerEntry(
            path=f"segment-logs/9IP56Shn6/1790812800000/{n:08d}.9IP56Shn6.1.2.{n:032x}.gz",
            size=1_000_000 + n,
            stamp=f"{n:032x}",
            lines=10_000,
            hours=("2026-10-01T07", "2026-10-01T08"),
        )
        for n in range(count)
    )
    page = LedgerPage({entry.path: entry for entry in entries})

    def prepared() -> Callable[[], object]:
        data = encode(page)
        return lambda: decode(data, LedgerPage, "page")

    return _measured("raw file in the ledger", "the driver", count, prepared)


def _measured(what: str, where: str, count: int, prepared: Work) -> Cost:
    """In a process of its own, whose highest use of memory tells."""
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)

    def child() -> None:
        work = prepared()
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before, began = _peak(), time.process_time()
        kept = work()
        there.send((_peak() - before, time.process_time() - began))
        del kept

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    there.close()
    size, seconds = here.recv()
    process.join()
    return Cost(what, where, count, size / count, 1e6 * seconds / count)


def _peak() -> int:
    """Bytes; `ru_maxrss` does not know that it was asked to start anew."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
