"""Folders of tables in which files lie that the lake knows nothing of."""

from dataclasses import replace

import msgspec

from eventlake.resolve import ResolvedTable
from eventlake.rules import paths
from eventlake.work.unit_work import UnitWork


def kept_apart(work: UnitWork, resolved: dict[str, ResolvedTable]) -> dict[str, ResolvedTable]:
    """New tables whose folder somebody has used before them get no partition in it.

    Another product may have kept its tables at the same paths, or an earlier life of this lake:
    whatever lies in a partition's folder is read as part of it.
    """
    new = [table for table, one in resolved.items() if one.is_new and one.schema.owns_folder]
    if not new:
        return resolved
    source_id = work.context.source.id
    root = paths.table_folder(source_id, "").rpartition("/")[0]
    there = set(work.context.storage.folders(root))
    taken = [t for t in new if paths.table_folder(source_id, t).rpartition("/")[2] in there]
    if taken:
        named = ", ".join(taken[:10]) + (", …" if len(taken) > 10 else "")
        work.context.listener.log(
            f"{work.unit.label}: {root} holds files of other tables called {named}. They stay as "
            "they are; ours go to folders of their own."
        )
    return resolved | {table: _apart(resolved[table]) for table in taken}


def _apart(one: ResolvedTable) -> ResolvedTable:
    return replace(one, schema=msgspec.structs.replace(one.schema, owns_folder=False))
