"""A unit of work under way: what it is, what it builds on, and where its data flow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from eventlake.catalog.base import CatalogPartition, Days
from eventlake.rules import paths
from eventlake.rules.types import TableSchema
from eventlake.state.manifest import RunKind
from eventlake.state.source_state import SourceState
from eventlake.state.suppression import Suppression
from eventlake.work.dataflow import Dataflow
from eventlake.work.run_context import RunContext
from eventlake.work.unit import Unit


@dataclass(frozen=True, slots=True)
class UnitWork:
    """A unit, the state it builds on, and where its data flow."""

    context: RunContext
    unit: Unit
    state: SourceState
    flow: Dataflow
    start: date | None = None  # the source's first day
    suppression: Suppression | None = None
    log_files: Mapping[str, int] = field(default_factory=dict)  # last number by batch type
    dry: bool = False  # everything is counted, and nothing written but in staging

    @property
    def tables(self) -> dict[str, TableSchema]:
        """The tables the source has where it writes now, by table."""
        return self.state.tables_of(self.context.source)

    @property
    def name(self) -> str:
        return f"{self.context.run_id}-{self.unit.number}"

    @property
    def log_folder(self) -> str:
        """Where the record log lies until it is published."""
        run = paths.stage(self.context.source.id, self.context.run_id)
        return f"{run}/{self.unit.number}/log"

    @property
    def index_folder(self) -> str | None:
        """Where the ids of a dry run go, so that its next unit knows them."""
        run = paths.stage(self.context.source.id, self.context.run_id)
        return f"{run}/ids" if self.dry else None

    @property
    def operation(self) -> str:
        return "append" if self.context.kind is RunKind.SYNC else "mirror"

    def partitions(
        self, tables: Mapping[str, TableSchema], days: Days
    ) -> dict[str, list[CatalogPartition]]:
        """What the catalog has of some tables in some days, by table."""
        catalog = self.context.catalog
        found = self.context.storage.each(
            lambda schema: catalog.partitions(schema.database, schema.name, days),
            list(tables.values()),
        )
        return dict(zip(tables, found, strict=True))
