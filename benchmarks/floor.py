"""The minimum that any loader takes: unpack the archive, parse every line, write the Parquet."""

import gc
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec
import pyarrow.parquet as pq
from isal import isal_zlib

from benchmarks.archive import raw_files
from benchmarks.contest import Run
from benchmarks.contestants import ENGINE, lake_tables

_GZIP = 16 + isal_zlib.MAX_WBITS


class Floor(msgspec.Struct, frozen=True):
    """CPU seconds of one core."""

    gunzip: float
    parse: float
    write: float

    def summary(self, runs: Iterable[Run]) -> str:
        total = self.gunzip + self.parse + self.write
        cpu = median(run.measured.cpu for run in runs if run.contestant == ENGINE.name)
        return (
            f"The floor: {total:.1f} CPU seconds (gunzip {self.gunzip:.1f}, "
            f"parse {self.parse:.1f}, write {self.write:.1f}); "
            f"the engine took {cpu / total:.1f} times that"
        )


class Stopwatch:
    """Adds up the CPU seconds of the blocks that it wraps."""

    def __init__(self) -> None:
        self.total = 0.0
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.total += time.process_time() - self._began


def measure_floor(archive: Path, lake: Path) -> Floor:
    """Measure in this process, one step after the other; writes copies of the lake's tables."""
    gc.disable()  # garbage collection is not part of the work
    decode = msgspec.json.Decoder().decode
    unpacking, parsing, writing = Stopwatch(), Stopwatch(), Stopwatch()
    for path in raw_files(archive):
        packed = path.read_bytes()
        with unpacking:
            text = isal_zlib.decompress(packed, wbits=_GZIP)
        lines = text.splitlines()
        with parsing:
            for line in lines:
                decode(line)
    with TemporaryDirectory() as folder:
        target = Path(folder) / "table.parquet"
        for file in (file for files in lake_tables(lake).values() for file in files):
            table = pq.read_table(file, partitioning=None)
            with writing:
                pq.write_table(table, target, compression="zstd")
    gc.enable()
    return Floor(unpacking.total, parsing.total, writing.total)
