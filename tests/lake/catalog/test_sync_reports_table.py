"""The table of sync reports is there from the start and grows with later versions."""

from pathlib import Path

import msgspec

from lake.catalog.local import LocalCatalog
from lake.catalog.sync_reports import SYNC_REPORTS, ensure_reports_table
from lake.storage import LocalStorage


def test_it_is_made_once(tmp_path: Path) -> None:
    catalog = LocalCatalog(LocalStorage(str(tmp_path)))
    ensure_reports_table(catalog)
    ensure_reports_table(catalog)
    assert catalog.databases() == ["__segment_datalake"]
    assert catalog.tables("__segment_datalake") == [SYNC_REPORTS]


def test_a_table_of_an_earlier_version_gets_the_new_columns_at_the_end(tmp_path: Path) -> None:
    catalog = LocalCatalog(LocalStorage(str(tmp_path)))
    earlier = msgspec.structs.replace(SYNC_REPORTS, columns=SYNC_REPORTS.columns[:20])
    catalog.create_table(earlier)
    ensure_reports_table(catalog)
    assert catalog.table("__segment_datalake", "sync_reports") == SYNC_REPORTS
