"""Row counts, null counts and sums of a large archive, held to the raw JSON, column by column."""

from pathlib import Path

import pytest

from eventlake.sample import IOS_PROD, WEB_SHOP, SampleSource, SampleSpec, write_archive
from tests.support.lakes.runs import Runs
from tests.support.oracles.raw_sums import lake_sums, raw_sums

TWENTY_THOUSAND = SampleSpec(days=2, events_per_day=5_000, hours=1)  # of each of two sources


@pytest.mark.parametrize("source", [WEB_SHOP, IOS_PROD], ids=lambda source: source.slug)
def test_every_column_adds_up_to_what_the_raw_json_does(
    tmp_path: Path, source: SampleSource
) -> None:
    account = write_archive(tmp_path, TWENTY_THOUSAND, sources=[source])
    runs = Runs(tmp_path, raw=f"segment-logs/{source.id}")
    report = runs.sync()

    loads = account.day_by_day(source.id)
    wanted = raw_sums(tmp_path, ([file.path for file in load] for load in loads))
    assert report.row_count > 10_000
    assert lake_sums(runs.catalog, runs.storage, "shop") == wanted
