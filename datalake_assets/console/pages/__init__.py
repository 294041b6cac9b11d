"""The pages: each gathers a typed model, which is its JSON twin, and has a template."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datalake_assets.console.access import Role
from datalake_assets.console.asked import Asked
from datalake_assets.console.pages.records import find, record_logs, records
from datalake_assets.console.pages.replay import replay
from datalake_assets.console.pages.runs import history, run
from datalake_assets.console.pages.sources import health, overview
from datalake_assets.console.pages.sql import sql
from datalake_assets.console.pages.tables import column, table, tables

if TYPE_CHECKING:
    from datalake_assets.console.app import Console

Gather = Callable[[Asked, "Console"], object]


@dataclass(frozen=True, slots=True)
class Page:
    path: str
    template: str
    gather: Gather
    role: Role = Role.VIEWER
    posts: bool = False
    twin: str = ""

    @property
    def paths(self) -> tuple[str, str]:
        """Its path, and that of its JSON twin, which comes first where both match."""
        return self.twin or f"{self.path}.json", self.path


PAGES = (
    Page("/", "overview.html", overview, twin="/overview.json"),
    Page("/history", "history.html", history),
    Page("/history/{run}", "run.html", run),
    Page("/health", "health.html", health),
    Page("/records", "records.html", record_logs),
    Page("/records/{run}", "records.html", records),
    Page("/find", "find.html", find),
    Page("/tables", "tables.html", tables),
    Page("/tables/{database}/{table}", "table.html", table),
    Page("/tables/{database}/{table}/{column}", "column.html", column),
    Page("/sql", "sql.html", sql, Role.OPERATOR, posts=True),
    Page("/replay", "replay.html", replay, Role.OPERATOR, posts=True),
)
"""Every page, in the order of the navigation."""
