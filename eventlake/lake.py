"""An open lake: settings, storage and catalog."""

from dataclasses import dataclass
from typing import Self

from eventlake.catalog import open_catalog
from eventlake.catalog.base import Catalog
from eventlake.clouds import Access
from eventlake.settings.hive import Hive
from eventlake.settings.models import Overridable, Settings, Source
from eventlake.storage import Storage, open_storage


@dataclass(frozen=True)
class Lake:
    """Settings, storage and catalog of a lake."""

    settings: Settings
    storage: Storage
    catalog: Catalog

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Open a lake without reading or writing; what is missing is created on first use."""
        return cls._opened(settings, _for_all(settings))

    def for_source(self, source: Source) -> Self:
        """The same lake with the role, region and account of a source."""
        if _access(source) == _access(_for_all(self.settings)):
            return self
        return self._opened(self.settings, source)

    @classmethod
    def _opened(cls, settings: Settings, of: Overridable) -> Self:
        storage = open_storage(settings.storage_uri, Access.of(of), settings.private_files)
        return cls(settings, storage, open_catalog(settings, storage, of))


def _for_all(settings: Settings) -> Overridable:
    """The settings whose access serves all sources: the top level, else the first with a role."""
    if settings.iam_role_arn is not None:
        return settings
    return next((s for s in settings.sources if s.iam_role_arn is not None), settings)


def _access(of: Overridable) -> tuple[Access, str | None, Hive]:
    return Access.of(of), of.glue_catalog_id, of.hive
