"""Runs the checks of a source's tables on what is published."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from eventlake.catalog.base import CatalogPartition, CatalogTable, partition_day
from eventlake.checks.drift import check_drift, check_schema_change
from eventlake.checks.fill import check_silent_columns
from eventlake.checks.freshness import check_freshness
from eventlake.checks.partitions import (
    ManifestHistory,
    check_partitions,
    check_small_files,
    read_history,
)
from eventlake.checks.view import (
    SILENT_COLUMNS,
    TABLE_RULES,
    PartitionFiles,
    TableView,
    Values,
    daily_slice,
    read_footers,
    sample,
    share_of,
    slices,
    table_rules,
)
from eventlake.columnar.id_hashes import words
from eventlake.lake import Lake
from eventlake.load.write import type_problems
from eventlake.rules.duplicates import NOTHING, Events, find_twins
from eventlake.rules.partitions import DAY_US, DatePartition
from eventlake.rules.types import TableSchema
from eventlake.runs.dedup import read_ids
from eventlake.runs.unit import Window
from eventlake.runs.verify import CheckResult, Severity
from eventlake.settings.models import Source

_ATTEMPTS = 10
_SECONDS_BETWEEN = 3.0
PARTIAL_CHECKS = ("drift", "partitions", "small_files")
"""After a load these cover only what the run has loaded."""
Wanted = Mapping[str, Collection[str]]
"""Names of checks by key of the table."""


@dataclass
class Loaded:
    """What a run has loaded, by key of the table: days, and their partitions in the catalog."""

    days: dict[str, set[str]] = field(default_factory=dict)
    partitions: dict[str, dict[Values, CatalogPartition]] = field(default_factory=dict)

    def add_day(self, key: str, day: str, partitions: Iterable[CatalogPartition]) -> None:
        self.days.setdefault(key, set()).add(day)
        found = self.partitions.setdefault(key, {})
        found.update((partition.values, partition) for partition in partitions)

    def view(
        self, key: str, history: ManifestHistory, entry: CatalogTable | None, follows: bool
    ) -> TableView:
        """A loaded table, with no partitions but those of the loaded days."""
        state, days = history.state, self.days[key]
        layout = DatePartition(state.layouts[key].date_partition)
        partitions = tuple(self.partitions[key].values())
        published = partitions
        if follows or history.applied < state.manifest:
            held = history.partitions.of(state, state.tables[key], (min(days), max(days)))
            published = tuple(p for p in held if partition_day(layout.keys, p.values) in days)
        return TableView.of(state, key, entry, partitions, published, is_partial=True)


def source_checks(lake: Lake, source: Source, now: datetime) -> Iterator[CheckResult]:
    """All checks of a source on what is published."""
    yield check_freshness(lake, source, now)
    yield from TableChecks(lake, source, now).run()


@dataclass
class TableChecks:
    """The checks of the tables of one source."""

    lake: Lake
    source: Source
    now: datetime
    wait: Callable[[float], None] = time.sleep
    _left: int = field(default=_ATTEMPTS, init=False)

    def __post_init__(self) -> None:
        self.lake = self.lake.for_source(self.source)

    def run(self, wanted: Wanted | None = None) -> Iterator[CheckResult]:
        """The results of all checks, or of the requested ones."""
        history = self._read()
        for schema in self.tables(history):
            names = (
                table_rules(self.source).keys() if wanted is None else wanted.get(schema.key, ())
            )
            if names:
                history, results = self._settled(history, schema, names)
                yield from results

    def of_loaded(self, loaded: Loaded) -> Iterator[CheckResult]:
        """The checks of tables that a run has just loaded, without a request for each table.

        They cover the partitions that the run has loaded, and read no file: the run itself has
        checked each. Errors that another run can cause by publishing now are left to its checks.
        """
        history = self._read()
        entries = {entry.name: entry for entry in self.lake.catalog.tables(self.source.database)}
        for key in loaded.days:
            entry = entries.get(history.state.tables[key].name)
            view = loaded.view(key, history, entry, self.lake.catalog.follows)
            results = list(self._judged(history, view, TABLE_RULES))
            if not _has_errors(results) or not history.is_outdated(self.lake.storage):
                yield from results

    def tables(self, history: ManifestHistory) -> list[TableSchema]:
        known = history.state.tables_of(self.source).values()
        return [schema for schema in known if not self.source.skips(schema.table)]

    def _settled(
        self, history: ManifestHistory, schema: TableSchema, names: Collection[str]
    ) -> tuple[ManifestHistory, list[CheckResult]]:
        """Check a table. Failures are checked again while a run is publishing, as the state may be
        incomplete."""
        while True:
            schema = history.state.tables.get(schema.key, schema)
            view = self._view(
                history, schema, with_files=bool({"drift", "partitions"} & set(names))
            )
            results = list(self._judged(history, view, names))
            if (
                not _has_errors(results)
                or not self._left
                or not history.is_outdated(self.lake.storage)
            ):
                return history, results
            self._left -= 1
            self.wait(_SECONDS_BETWEEN)
            history = self._read()

    def _read(self) -> ManifestHistory:
        return read_history(self.lake, self.source.id, self.now)

    def _judged(
        self, history: ManifestHistory, view: TableView, names: Collection[str]
    ) -> Iterator[CheckResult]:
        schema = view.schema
        if "drift" in names:
            yield check_drift(view)
        if "partitions" in names:
            yield check_partitions(view)
        if "small_files" in names:
            yield check_small_files(
                self.source, schema, view.layout, view.partitions, self.now, history.recent
            )
        if "schema_change" in names:
            yield check_schema_change(schema, history.changes.get(schema.key, ()))
        if SILENT_COLUMNS in names and view.entry is not None:
            share = share_of(len(history.state.tables))
            yield check_silent_columns(self.lake.storage, view.entry, view.published, share)

    def _view(self, history: ManifestHistory, schema: TableSchema, with_files: bool) -> TableView:
        state, catalog = history.state, self.lake.catalog
        entry = catalog.table(schema.database, schema.name)
        partitions = catalog.partitions(schema.database, schema.name) if entry else []
        published = history.partitions.of(state, schema)
        share = share_of(len(state.tables))
        sampled: list[PartitionFiles] = []
        if with_files:
            due = sample(published, share, daily_slice(self.now))
            # A location elsewhere is a problem of its own, and may not be readable.
            sampled = read_footers(self.lake.storage, [p for p in due if "://" not in p.location])
        days_for_all = slices(len(published), share)
        return TableView.of(state, schema.key, entry, partitions, published, sampled, days_for_all)


def check_published(
    lake: Lake, source: Source, schema: TableSchema, window: Window
) -> Iterator[CheckResult]:
    """Check the files of a table's partitions again: duplicates, types and row counts."""
    lake = lake.for_source(source)
    days = (f"{window.start:%Y-%m-%d}", f"{window.end:%Y-%m-%d}")
    partitions = [
        partition
        for partition in lake.catalog.partitions(schema.database, schema.name, days)
        if window.start <= source.date_partition.parse(partition.values) < window.end
    ]
    stored = [f for p in partitions for f in lake.storage.files(p.location, recursive=False)]
    ids = read_ids(lake.storage, source, stored)
    events = Events(words(ids["id"].combine_chunks()), ids["received"].to_numpy())
    doubled = find_twins(events, NOTHING, source.dedup_days * DAY_US) >= 0
    files = [file for one in read_footers(lake.storage, partitions) for file in one.files]
    problems = [
        f"{file.name}: {problem}"
        for file in files
        for problem in (
            type_problems(file.columns, schema, older=True) if file.columns else [file.problem]
        )
    ]
    rows, published = sum(file.rows for file in files), sum(p.rows for p in partitions)
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
        schema.key, "conservation", rows == published, {"rows": rows, "published": published}
    )


def _has_errors(results: Iterable[CheckResult]) -> bool:
    return any(not r.passed and r.severity is Severity.ERROR for r in results)
