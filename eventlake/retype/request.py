"""The request for another type: kept in the source's state until a replay fulfils it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from msgspec.structs import replace

from eventlake.lake import Lake
from eventlake.rules.clock import new_run_id
from eventlake.rules.errors import CommitConflict, UsageError, did_you_mean
from eventlake.rules.names import RESCUED_DATA, STANDARD_COLUMNS
from eventlake.rules.types import Column, LakeType, TableSchema
from eventlake.runs.clean_up import with_unused
from eventlake.runs.context import now
from eventlake.runs.publish import apply, catch_up
from eventlake.settings.models import Source
from eventlake.state.lease import Lease, held_lease
from eventlake.state.manifest import RunKind, TypeRequest, commit
from eventlake.state.report import RunFacts
from eventlake.state.source_state import SourceState, read_state, refuse_changed_layout

_ALIASES = {"decimal": LakeType.DECIMAL}


@dataclass(frozen=True, slots=True)
class Target:
    """A column of an event table, its source, and the type requested for it."""

    source: Source
    schema: TableSchema
    column: Column
    requested: LakeType | None = None

    @property
    def name(self) -> str:
        return f"{self.schema.key}.{self.column.name}"


def parse_type(text: str) -> LakeType:
    """One of the five types, in any case; `decimal` has but one form here."""
    word = "".join(text.lower().split())
    known = {**{type.value: type for type in LakeType}, **_ALIASES}
    if word not in known:
        raise UsageError(
            f"{text!r} is no type of the lake{did_you_mean(word, known)}; allowed are "
            f"{', '.join(LakeType)}."
        )
    return known[word]


def find_column(lake: Lake, name: str) -> Target:
    """The column called `database.table.column`, if its type may change."""
    parts = name.split(".")
    if len(parts) != 3 or not all(parts):
        raise UsageError(
            f"{name!r} names no column; write DB.TABLE.COLUMN, as in "
            "ios_prod.track_order_completed.properties_total."
        )
    database, table, column = parts
    states = [
        (source, read_state(lake.for_source(source).storage, source.id))
        for source in lake.settings.sources
    ]
    source, state, schema = _table(states, database, table)
    found = _column(source, schema, column)
    return Target(source, schema, found, state.requested_types.get(schema.key, {}).get(column))


def _table(
    states: list[tuple[Source, SourceState]], database: str, name: str
) -> tuple[Source, SourceState, TableSchema]:
    written = [(so, st, schema) for so, st in states for schema in st.tables_of(so).values()]
    databases = sorted({schema.database for _, _, schema in written})
    if database not in databases:
        listed = ", ".join(databases) or "none yet; `datalake sync` makes them"
        raise UsageError(
            f"No source writes event tables to a database {database!r}"
            f"{did_you_mean(database, databases)} (databases: {listed})."
        )
    tables = {schema.name: one for one in written if (schema := one[2]).database == database}
    if name not in tables:
        raise UsageError(
            f"Database {database} has no event table {name!r}{did_you_mean(name, tables) or '.'} "
            f"`datalake tables {database}` lists its tables."
        )
    return tables[name]


def _column(source: Source, schema: TableSchema, name: str) -> Column:
    columns = {column.name: column for column in schema.columns}
    if name in {column.name(source.naming) for column in STANDARD_COLUMNS}:
        raise UsageError(
            f"{name} is a standard column: every table has it, and with the type "
            f"{columns[name].type.sql}. Only columns made from the events' own fields can be "
            "given another type."
        )
    if name == RESCUED_DATA:
        raise UsageError(
            f"{name} keeps, as JSON text, what did not fit into other columns. Give one of these "
            "another type, and its values return from there."
        )
    if name in source.date_partition.keys:
        raise UsageError(f"{name} is a partition key of {schema.key}; these are always strings.")
    if name not in columns:
        raise UsageError(
            f"{schema.key} has no column {name!r}{did_you_mean(name, columns) or '.'} "
            f"`datalake tables {schema.key}` lists its columns."
        )
    return columns[name]


def record_request(
    lake: Lake, target: Target, type: LakeType | None, waiting: Callable[[Lease], None]
) -> None:
    """Commit the request, or with None its withdrawal, as soon as the lease is free."""
    source, lake = target.source, lake.for_source(target.source)
    storage, catalog = lake.storage, lake.catalog
    run_id = new_run_id()
    facts = RunFacts.of(lake.settings, source, run_id, now())
    # Without the lease, a unit of work in progress would have to be repeated.
    with held_lease(storage, source.id, run_id, f"retype of {target.name}", waiting):
        while True:
            state = catch_up(storage, catalog, source.id)
            refuse_changed_layout(source, state)
            has = state.tables[target.schema.key].types()[target.column.name]
            request = TypeRequest(
                target.schema.key, target.column.name, None if type is has else type
            )
            manifest = replace(
                state.next_manifest(source, RunKind.RETYPE, facts),
                requested_types=(request,),
            )
            manifest = with_unused(state, manifest, now())
            try:
                commit(storage, manifest)
            except CommitConflict:
                continue
            apply(storage, catalog, state, manifest)
            return


def days_to_replay(lake: Lake, target: Target) -> tuple[date, date]:
    """The first and the last day to replay for the new type to take effect."""
    source, schema = target.source, target.schema
    kept = read_state(lake.storage, source.id).start
    first = source.start or (date.fromisoformat(kept) if kept else date.min)
    partitions = lake.catalog.partitions(schema.database, schema.name)
    days = {source.date_partition.parse(p.values).date() for p in partitions}
    today = now().date()
    inside = [day for day in days if first <= day <= today] or [today]
    return min(inside), max(inside)
