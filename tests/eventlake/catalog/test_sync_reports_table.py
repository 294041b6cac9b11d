"""The table of sync reports is there from the start and grows with later versions."""

import msgspec

from eventlake.catalog.base import Catalog
from eventlake.catalog.sync_reports import SYNC_REPORTS, ensure_reports_table


def test_it_is_made_once(empty_catalog: Catalog) -> None:
    ensure_reports_table(empty_catalog)
    ensure_reports_table(empty_catalog)
    assert empty_catalog.databases() == ["__segment_datalake"]
    assert empty_catalog.tables("__segment_datalake") == [SYNC_REPORTS]


def test_a_table_of_an_earlier_version_gets_the_new_columns_at_the_end(
    empty_catalog: Catalog,
) -> None:
    earlier = msgspec.structs.replace(SYNC_REPORTS, columns=SYNC_REPORTS.columns[:20])
    empty_catalog.ensure_database("__segment_datalake")
    empty_catalog.create_table(earlier)
    ensure_reports_table(empty_catalog)
    assert empty_catalog.table("__segment_datalake", "sync_reports") == SYNC_REPORTS
