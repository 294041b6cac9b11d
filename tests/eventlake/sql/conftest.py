"""A small lake to ask: two databases, one table with partitions, the empty table of reports."""

from pathlib import Path

import pytest

from eventlake.catalog.sync_records import ensure_own_tables
from tests.support.lakes.small_lake import SmallLake


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    lake = SmallLake(tmp_path)
    ensure_own_tables(lake.catalog)
    return lake
