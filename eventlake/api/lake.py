"""An open lake as Python sees it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from eventlake.api.health import Health, health
from eventlake.api.past import Past
from eventlake.api.records import Records
from eventlake.api.tables import Table, find_table, known_database
from eventlake.catalog.base import CatalogTable
from eventlake.lake import Lake
from eventlake.records import find as finding
from eventlake.records.find import Found
from eventlake.records.logs import run_log, run_logs
from eventlake.rules.clock import now, parse_hour
from eventlake.rules.errors import UsageError
from eventlake.runs.report_history import RunReport, newest_reports, report_of
from eventlake.runs.unit import Window
from eventlake.runs.verify import CheckResult
from eventlake.settings.file import load_settings
from eventlake.settings.models import Source
from eventlake.status import SourceStatus, source_status

if TYPE_CHECKING:
    from eventlake.sql import Hidden, SqlLimits


LAUNCHERS = "eventlake.launchers"
"""The entry points of packages that start runs: this package knows neither Dagster nor Spark."""


class Launcher(Protocol):
    """Starts runs and waits for them; a failed one raises `LakeError` with its error."""

    def sync(self, lake: Lake, source: Source) -> RunReport: ...

    def replay(
        self, lake: Lake, source: Source, window: Window, tables: tuple[str, ...] | None
    ) -> RunReport: ...


@dataclass(frozen=True)
class EventLake:
    """All that a lake can be asked; `eventlake.open` makes one.

    Every method reads the lake as it is now. A `source` is a slug or an id; None means all.
    """

    lake: Lake
    launcher: Launcher | None = None
    past: Past = field(default_factory=Past, repr=False)

    @classmethod
    def of_file(
        cls, settings: str | os.PathLike[str] | None = None, launcher: Launcher | None = None
    ) -> "EventLake":
        path = None if settings is None else Path(settings)
        return cls(Lake.open(load_settings(path, os.environ, Path.cwd())), launcher)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of the settings."""
        return self.lake.settings.sources

    def databases(self) -> list[str]:
        return self.lake.catalog.databases()

    def tables(self, database: str | None = None) -> list[Table]:
        """All tables, or those of a database.

        >>> [table.name for table in my.tables("web_shop")][:2]
        ['web_shop.alias', 'web_shop.group']
        """
        asked = self.databases() if database is None else [known_database(self.lake, database)]
        return [
            Table(self.lake, one, self.past)
            for name in asked
            for one in self.lake.catalog.tables(name)
        ]

    def table(self, name: str) -> Table:
        """A table by its full name, `database.table`."""
        database, dot, table = name.partition(".")
        if not dot:
            raise UsageError(f"{name!r} is no full name of a table: write `database.table`.")
        return find_table(self.lake, database, table, self.past)

    def sql(
        self, query: str, limits: "SqlLimits | None" = None, suppressed: bool = True
    ) -> pa.Table:
        """The rows of one statement that reads, in DuckDB's dialect; times and days are UTC.

        With `suppressed=False`, no table has the rows of suppressed people.

        >>> my.sql("SELECT count(*) AS pages FROM web_shop.page").to_pylist()
        [{'pages': 35}]
        """
        from eventlake.sql import LakeSql

        lake = LakeSql(self.lake.catalog, self.lake.storage)
        return (lake if suppressed else replace(lake, hidden=self._hidden)).query(query, limits)

    def reports(self, source: str | None = None, failed: bool = False) -> Iterator[RunReport]:
        """What syncs and replays did, the newest first; no more is read than is taken.

        >>> newest = next(my.reports())
        >>> newest.source.status, newest.source.row_count, newest.new_tables
        ('finished', 115, ['track_gift_card_redeemed'])
        """
        ids = None if source is None else {self.lake.settings.source(source).id}
        return (one for one in newest_reports(self.lake, ids) if one.failed or not failed)

    def report(self, run: str) -> RunReport:
        """The report of a run, by its id or Dagster's, the beginning of one, or `latest`."""
        found = report_of(self.reports(), run)
        if found is None:
            raise UsageError(
                f"No report has the run id {run!r}. `datalake reports` lists them; a run gets its "
                "report when it ends."
            )
        return found

    def records(self, run: str = "latest", source: str | None = None) -> Records:
        """What became of each record of a run, by its id or Dagster's, the beginning of one."""
        return Records.of_log(self.lake, run_log(self.lake, self._chosen(source), run))

    def record_logs(self, limit: int | None = None) -> list[Records]:
        """The runs that have a record log, the newest first."""
        logs = [log for source in self.sources for log in run_logs(self.lake, source)]
        logs.sort(key=lambda log: (log.run.started_at, log.run_id), reverse=True)
        return [Records.of_log(self.lake, log) for log in islice(logs, limit)]

    def find(self, message_id: str, source: str | None = None) -> list[Found]:
        """All that is known of an event, by source; empty where it is nowhere.

        >>> id = my.sql("SELECT min(message_id) AS id FROM web_shop.page").to_pylist()[0]["id"]
        >>> [row.table_name for found in my.find(id) for row in found.rows]
        ['page']
        """
        found = (finding.find(self.lake, one, message_id) for one in self._chosen(source))
        return [one for one in found if one]

    def status(self, at: datetime | None = None) -> list[SourceStatus]:
        """The state of each source: last sync, lag, waiting files, failures, runs."""
        return [source_status(self.lake, one, at or now()) for one in self.sources]

    def health(
        self, days: int = 30, at: datetime | None = None, last: date | None = None
    ) -> Health:
        """How each source has done over some days, the last of which is today by default.

        >>> (source,) = my.health(days=7).sources
        >>> source.level, source.last_day.duplicates
        (<Level.OK: 'healthy'>, 19)
        """
        return health(self.lake, self.past, days, at or now(), last)

    def check(self, source: str | None = None) -> list[CheckResult]:
        """Compare catalog, files and schemas of all tables with what was published.

        >>> all(result.passed for result in my.check() if result.check != "freshness")
        True
        """
        from eventlake.checks.published import source_checks  # loads compiled kernels

        at = now()
        chosen = self._chosen(source)
        return [result for one in chosen for result in source_checks(self.lake, one, at)]

    def sync(self, source: str | None = None) -> list[RunReport]:
        """Load all new raw files of a source, or of every enabled one; waits until it is done."""
        launcher = self._launcher()
        chosen = self._chosen(source) if source else [one for one in self.sources if one.enabled]
        return [launcher.sync(self.lake, one) for one in chosen]

    def replay(
        self, source: str, first: str, end: str, tables: Sequence[str] | None = None
    ) -> RunReport:
        """Load a past range again and replace its rows; hours (UTC) as in `datalake replay`."""
        chosen = self.lake.settings.source(source)
        own = tuple(chosen.own_table(table) for table in tables) if tables else None
        window = Window(parse_hour(first), parse_hour(end))
        return self._launcher().replay(self.lake, chosen, window, own)

    def _hidden(self, entry: CatalogTable) -> "Hidden":
        from eventlake.sql import Hidden

        table = Table(self.lake, entry, self.past)
        return Hidden(table.suppressed(), table.withheld())

    def _chosen(self, source: str | None) -> Sequence[Source]:
        return self.sources if source is None else (self.lake.settings.source(source),)

    def _launcher(self) -> Launcher:
        if self.launcher is not None:
            return self.launcher
        for found in entry_points(group=LAUNCHERS):
            launcher: Launcher = found.load()()
            return launcher
        raise UsageError(
            "No package that starts runs is installed with Eventlake. Install it with its entry "
            f"points (`{LAUNCHERS}`; in a checkout: `make setup`), or pass a launcher to "
            "`eventlake.open`."
        )
