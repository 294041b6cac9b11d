"""A lake, opened: its settings, its files, its catalog."""

from dataclasses import dataclass
from typing import Self

from lake.aws.access import AwsAccess
from lake.catalog.base import Catalog
from lake.catalog.opening import open_catalog
from lake.settings import Overridable, Settings, Source
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
        return cls._opened(settings, settings)

    def for_source(self, source: Source) -> Self:
        """The same lake, with the role, region and account that a source has of its own."""
        own = AwsAccess.of(source), source.glue_catalog_id
        if own == (AwsAccess.of(self.settings), self.settings.glue_catalog_id):
            return self
        return self._opened(self.settings, source)

    @classmethod
    def _opened(cls, settings: Settings, of: Overridable) -> Self:
        storage = open_storage(settings.storage_uri, AwsAccess.of(of))
        return cls(settings, storage, open_catalog(settings, storage, of))
