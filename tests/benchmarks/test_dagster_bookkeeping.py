"""The measurement of Dagster's bookkeeping books what syncs book."""

from pathlib import Path

import pytest

from benchmarks.dagster_bookkeeping import measure
from datalake_assets.instance.home import URL_VARIABLE, VARIABLE


def test_a_table_more_is_four_events_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL_VARIABLE, raising=False)
    costs = []
    for tables in (1, 2):
        home = tmp_path / str(tables)
        home.mkdir()
        monkeypatch.setenv(VARIABLE, str(home))
        costs.append(measure("SQLite", home, tables, syncs=1))
    one, two = costs
    assert two.events - one.events == 4
    assert 0 < one.bytes < two.bytes
    assert one.row().startswith("| SQLite | ")
