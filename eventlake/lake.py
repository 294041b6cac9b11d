"""A lake, opened: its settings, its files, its catalog."""

from dataclasses import dataclass
from typing import Self

from eventlake.aws.access import AwsAccess
from eventlake.catalog.base import Catalog
from eventlake.catalog.factory import open_catalog
from eventlake.settings.models import Overridable, Settings, Source
from eventlake.storage import Storage, open_storage


@dataclass(frozen=True)
class Lake:
    """What everything that works on a lake needs of it."""

    settings: Settings
    storage: Storage
    catalog: Catalog

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Nothing is read or written by opening; what does not exist is made when first needed."""
        return cls._opened(settings, _for_all(settings))

    def for_source(self, source: Source) -> Self:
        """The same lake, with the role, region and account that a source has of its own."""
        if _access(source) == _access(_for_all(self.settings)):
            return self
        return self._opened(self.settings, source)

    @classmethod
    def _opened(cls, settings: Settings, of: Overridable) -> Self:
        storage = open_storage(settings.storage_uri, AwsAccess.of(of))
        return cls(settings, storage, open_catalog(settings, storage, of))


def _for_all(settings: Settings) -> Overridable:
    """Whose access is used for what concerns all sources: if the top has no role, the first's."""
    if settings.iam_role_arn is not None:
        return settings
    return next((s for s in settings.sources if s.iam_role_arn is not None), settings)


def _access(of: Overridable) -> tuple[AwsAccess, str | None]:
    return AwsAccess.of(of), of.glue_catalog_id
