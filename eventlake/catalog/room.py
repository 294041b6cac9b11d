"""How many tables more the limits of a catalog allow."""

from collections.abc import Collection

from eventlake.catalog.base import Catalog
from eventlake.settings.models.models import Limits


def room(catalog: Catalog, names: Collection[str] | None, limits: Limits) -> int:
    """For how many tables beside those of these names a database has room.

    None is a database that is not there, and may itself be one too many.
    """
    if names is not None:
        return max(0, limits.catalog_tables - len(names))
    return limits.catalog_tables if catalog.count_databases() < limits.catalog_databases else 0
