"""A lake with one source, in a folder or elsewhere, its runs without Spark, and what they left."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.catalog.base import Catalog, CatalogPartition, CatalogTable
from eventlake.catalog.local import LocalCatalog
from eventlake.rules import paths
from eventlake.rules.counts import UnitReport
from eventlake.runs.clean_up import CleanUp
from eventlake.runs.context import Dataflow, RunContext, Silent
from eventlake.runs.replay import replay
from eventlake.runs.run import Run
from eventlake.runs.sync import sync
from eventlake.runs.unit import Window
from eventlake.settings.models import Source
from eventlake.state.id_index import read_index
from eventlake.state.ledger import LedgerEntry, read_ledger
from eventlake.state.manifest import RunKind
from eventlake.state.report import RunFacts
from eventlake.state.source_state import SourceState, read_state
from eventlake.storage import LocalStorage, Storage
from eventlake.upkeep.compaction import Compacted, bring_home, compact
from eventlake.upkeep.upkeep import UpkeepReport, upkeep
from tests.support.lakes.archive import Archive, Line
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.settings import SHOP, settings_of

if TYPE_CHECKING:  # it loads DuckDB, of which a server of forks complains when it ends
    from eventlake.audit.audit import Audit

SOURCE_ID = "S1"
Row = dict[str, Any]
Audited = Callable[..., "Audit"]
"""Audits a lake: all of it, or from one time to another."""
CleanAfter = Callable[[float], CleanUp]
"""Cleans up as if this many hours had passed."""


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Runs(Silent):
    """Syncs and replays of source `S1` (slug `shop`); other settings of it as keywords."""

    def __init__(
        self, root: Path, first_run: int = 1, store: Storage | None = None, **source: Any
    ) -> None:
        self.root = root
        self.storage: Storage = store or LocalStorage(str(root))
        self.archive = Archive(root / paths.raw_root(SOURCE_ID))
        self.flow: Callable[[], Dataflow] = InProcess
        self.logged: list[str] = []
        self.warnings: list[str] = []
        self._numbers = count(first_run)
        self._carried: dict[str, str] = {}
        self.set(**source)

    def set(self, **source: Any) -> None:
        """Other settings from now on."""
        self.settings = settings_of(self.storage.uri, SHOP | source)

    @property
    def source(self) -> Source:
        return self.settings.sources[0]

    @property
    def catalog(self) -> Catalog:
        return LocalCatalog(self.storage)

    def log(self, message: str) -> None:
        self.logged.append(message)

    def warn(self, message: str) -> None:
        self.warnings.append(message)

    def context(self, kind: RunKind = RunKind.SYNC, window: Window | None = None) -> RunContext:
        number = next(self._numbers)
        self._carry_archive()
        start = utc("2026-10-20T00:00:00.123456") + timedelta(minutes=number)
        span = (window.start, window.end) if window else None
        facts = RunFacts.of(self.settings, self.source, f"R{number}", start, window=span)
        return RunContext(
            self.settings, self.source, self.storage, self.catalog, kind, facts, self.flow, self
        )

    def _carry_archive(self) -> None:
        """To where the lake is, if that is not where the archive was written."""
        if self.storage.uri == str(self.root):
            return
        for file in LocalStorage(str(self.root)).files(paths.raw_root(SOURCE_ID)):
            if self._carried.get(file.path) != file.stamp:
                self.storage.write(file.path, (self.root / file.path).read_bytes())
                self._carried[file.path] = file.stamp

    def sync(self, days: tuple[date, date] | None = None) -> UnitReport:
        return sync(self.context(), days)

    def load(self, day: str, *lines: Line, name: str = "a") -> UnitReport:
        """Put a raw file into a day folder, and sync."""
        self.archive.day(day).file(name, *lines)
        return self.sync()

    def replay(self, start: str, end: str, *tables: str, accept: bool = True) -> UnitReport:
        """A replay; without `accept`, changed raw files are refused."""
        window = Window(utc(start), utc(end))
        context = self.context(RunKind.REPLAY, window)
        return replay(context, window, frozenset(tables) or None, accept)

    def compact(self, at: str = "2026-10-20") -> Compacted:
        """Put small files together, as on a certain day."""
        run = Run(self.context(RunKind.UPKEEP))
        with run.unreported():
            return sum(compact(run, utc(at)), Compacted())

    def come_home(self, hours: float = 25) -> int:
        """Bring partitions to their documented folders, as after some hours; how many."""
        run = Run(self.context(RunKind.UPKEEP))
        with run.unreported():
            return len(list(bring_home(run, datetime.now(UTC) + timedelta(hours=hours))))

    def upkeep(self, at: str = "2026-10-20") -> UpkeepReport:
        """All of it, as on a certain day."""
        return upkeep(self.context(RunKind.UPKEEP), utc(at))

    def tables(self) -> list[str]:
        return [table.name for table in self.catalog.tables(self.source.database)]

    def table(self, name: str) -> CatalogTable:
        table = self.catalog.table(self.source.database, name)
        assert table is not None, f"no table {name} among {self.tables()}"
        return table

    def columns(self, name: str) -> list[tuple[str, str, str]]:
        """Name, type and comment of each column in the catalog, in order."""
        return [(column.name, column.type, column.comment) for column in self.table(name).columns]

    def partitions(self, name: str) -> dict[tuple[str, ...], CatalogPartition]:
        found = self.catalog.partitions(self.source.database, name)
        return {partition.values: partition for partition in found}

    def files(self, name: str) -> dict[str, list[str]]:
        """The files of each partition's location."""
        return {
            partition.location: [file.name for file in self.storage.files(partition.location)]
            for partition in self.partitions(name).values()
        }

    def rows(self, name: str, *columns: str) -> list[Row]:
        """The rows of a table as the catalog leads to them, with their partition's values."""
        table, rows = self.table(name), []
        for partition in self.partitions(name).values():
            keys = dict(zip(table.partition_keys, partition.values, strict=True))
            found = [keys | row for row in self.read(partition.location)]
            assert len(found) == partition.rows
            rows += found
        return [{c: row.get(c) for c in columns} for row in rows] if columns else rows

    def read(self, location: str) -> list[Row]:
        """The rows that lie somewhere."""
        rows: list[Row] = []
        for file in self.storage.files(location):
            # One file at a time and no dataset, so that nothing is read into folder names.
            with self.storage.open_input(file.path) as stream:
                rows += _timestamps_as_micros(pq.ParquetFile(stream).read()).to_pylist()
        return rows

    def contents(self) -> dict[str, bytes]:
        """All files of a lake in a folder."""
        files = (path for path in sorted(self.root.rglob("*")) if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    def ids(self, name: str) -> list[str]:
        return sorted(row["message_id"] for row in self.rows(name))

    def reports(self) -> dict[str, list[dict[str, Any]]]:
        """The lines of every report, by run."""
        found = {}
        for file in self.storage.files(paths.reports_root()):
            data = self.storage.read(file.path) or b""
            found[file.path.split("run_id=")[1].split("/")[0]] = [
                json.loads(line) for line in data.splitlines()
            ]
        return found

    def records(self, run: str = "") -> list[tuple[str, int, str]]:
        """Raw file, line and status of every record in the log of a run, or of all."""
        found: list[tuple[str, int, str]] = []
        for file in self.storage.files(paths.tracking("W1", SOURCE_ID, run)):
            if file.name.endswith(".parquet"):
                with self.storage.open_input(file.path) as stream:
                    rows = pq.ParquetFile(stream).read(["raw_file", "raw_line", "status"])
                found += (tuple(row.values()) for row in rows.to_pylist())
        return found

    def state(self) -> SourceState:
        return read_state(self.storage, SOURCE_ID)

    def ledger(self) -> dict[str, LedgerEntry]:
        """What the ledger has, by name of file."""
        folders = self.storage.folders(paths.raw_root(SOURCE_ID))
        entries = read_ledger(self.storage, SOURCE_ID, folders)
        return {path.rsplit("/", 1)[-1]: entry for path, entry in entries.items()}

    def index(self) -> dict[str, list[tuple[int, ...]]]:
        """The ids and times that the index has of each day."""
        found = {}
        for day, files in self.state().index.items():
            ids, received, _ = read_index(self.storage, files)
            found[day] = sorted(
                (*map(int, id), int(at)) for id, at in zip(ids, received, strict=True)
            )
        return found


def _timestamps_as_micros(table: pa.Table) -> pa.Table:
    """Python's times end before some that Arrow has, and are slow to compare."""
    fields = [
        field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
