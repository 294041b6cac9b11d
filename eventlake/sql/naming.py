"""From the name of a table in a statement to the table in the catalog."""

import difflib
from collections.abc import Collection

from eventlake.catalog.base import Catalog, CatalogTable
from eventlake.rules.errors import UsageError
from eventlake.sql.statement import Mention


def resolve(catalog: Catalog, databases: Collection[str], mention: Mention) -> CatalogTable | None:
    """The table that is meant, or None; without its database it must be the only one so named."""
    places = databases if mention.database is None else {mention.database} & set(databases)
    found = [table for place in places if (table := catalog.table(place, mention.table))]
    if len(found) > 1 and not mention.shadowed:
        names = ", ".join(table.full_name for table in found)
        raise UsageError(
            f"Several databases have a table {mention.table!r}: {names}. Write one of these."
        )
    return found[0] if len(found) == 1 else None


def unknown_table(catalog: Catalog, databases: Collection[str], mention: Mention) -> UsageError:
    """That there is no such table, with those of nearly the same name."""
    names = [table.full_name for database in databases for table in catalog.tables(database)]
    near = difflib.get_close_matches(str(mention), names, cutoff=0.5)
    near += [n for n in names if n.partition(".")[2] == mention.table and n not in near]
    hint = f" Near it are: {', '.join(near)}." if near else ""
    return UsageError(
        f"There is no table {str(mention)!r} in the catalog.{hint} "
        "`datalake tables` lists all of them."
    )
