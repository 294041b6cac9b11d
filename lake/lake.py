"""A lake, opened: its settings, its files, its catalog."""

from dataclasses import dataclass
from typing import Self

from lake.aws.access import AwsAccess
from lake.catalog.base import Catalog
from lake.catalog.opening import open_catalog
from lake.settings import Settings
from lake.storage import Storage, open_storage


@dataclass(frozen=True)
class Lake:
    """What everything that works on a lake needs of it."""

    settings: Settings
    storage: Storage
    catalog: Catalog

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Nothing is read or written by opening; what does not exist is made when first needed."""
        access = AwsAccess.of(settings)
        storage = open_storage(settings.storage_uri, access)
        return cls(settings, storage, open_catalog(settings, storage, access))
