"""A lake in a container of Azure, and a Hive metastore: there, and ours to write to."""

from collections.abc import Iterator
from functools import partial

from datalake_assets.preflight.finding import Finding, finding_of
from datalake_assets.preflight.storage import WRITTEN
from eventlake.catalog.sync_records import ensure_own_tables
from eventlake.catalog.sync_reports import DATABASE
from eventlake.lake import Lake
from eventlake.storage.base import probe


def container_findings(lake: Lake) -> Iterator[Finding]:
    """The container first: where it cannot be reached, nothing in it can."""
    storage = lake.storage

    def reached() -> str:
        storage.files("", recursive=False)
        return storage.uri

    found = finding_of("storage", reached)
    yield found
    if found.error is None:
        for folder in WRITTEN:
            yield finding_of(folder, partial(probe, storage, folder))


def hive_finding(lake: Lake) -> Finding:
    """Whether databases and tables may be made: tried with those of sync reports and records."""

    def check() -> str:
        ensure_own_tables(lake.catalog)
        return f"tables may be made; those of {DATABASE} are there"

    return finding_of("metastore", check)
