"""Tables that a unit would make: whether the catalog has room for them, under free names."""

from eventlake.catalog.factory import room
from eventlake.load.seen import Seen
from eventlake.rules.errors import InvalidSetting
from eventlake.state.manifest import read_manifest
from eventlake.work.unit_work import UnitWork


def room_for_tables(work: UnitWork, seen: Seen) -> int | None:
    """How many tables the catalog's limits let us make; None where there is none to be made.

    What there is, is looked up only then: a database may have hundreds of thousands of tables.
    """
    source, catalog = work.context.source, work.context.catalog
    new = {table.table for table in seen.tables} - work.tables.keys()
    if not new:
        return None
    names = catalog.names(source.database)
    if taken := {source.catalog_table(table) for table in new} & (names or set()):
        _refuse(work, min(taken))
    return room(catalog, names, source.limits)


def _refuse(work: UnitWork, name: str) -> None:
    """A table that the lake has not made, or in an earlier life, has its own columns and types."""
    source = work.context.source
    if read_manifest(work.context.storage, source.id, work.state.manifest + 1) is not None:
        return  # another run has just made it: this one will be planned again
    raise InvalidSetting(
        f"Table {source.database}.{name} is in the catalog, but was not made by this lake, or by "
        "one whose state is gone: its columns and partitions are not known. It is left as it is. "
        "Set another `database` or a `table_prefix` for the source, or remove that table from the "
        "catalog (its files stay)."
    )
