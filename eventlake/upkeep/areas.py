"""How much lies where: what an upkeep found, and what it left."""

import msgspec

from eventlake.rules import paths
from eventlake.runs.clean_up import counted
from eventlake.settings.models.models import Settings, Source
from eventlake.storage import Storage


class Amount(msgspec.Struct, frozen=True):
    files: int = 0
    bytes: int = 0


def areas(settings: Settings, source: Source) -> dict[str, str]:
    """The folders of a source that runs fill, by what they are called in reports."""
    return {
        "data": f"segment-data/data/{source.id}",
        "record log": paths.tracked_runs(settings.workspace_id, source.id),
        "id index": paths.id_indexes(source.id),
        "manifests": paths.manifests(source.id),
        "staging": paths.staged_runs(source.id),
    }


def measured(storage: Storage, settings: Settings, source: Source) -> dict[str, Amount]:
    found = areas(settings, source)
    amounts = (counted(files) for files in storage.each(storage.files, list(found.values())))
    return {
        area: Amount(amount.files, amount.bytes)
        for area, amount in zip(found, amounts, strict=True)
    }
