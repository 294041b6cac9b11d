"""Duplicates spread over many days and syncs: exactly the distinct ids are in the lake."""

from pathlib import Path

from eventlake.sample import IOS_PROD, SampleSpec
from tests.support.lakes.archive import arrivals, message_ids
from tests.support.lakes.runs import Runs

TEN_THOUSAND = SampleSpec(
    days=7, events_per_day=1_400, files_per_day=4, hours=1, faults=False, duplicates=0.08
)


def test_exactly_the_distinct_ids_of_seven_days_and_twelve_syncs_are_in_the_lake(
    tmp_path: Path,
) -> None:
    runs = Runs(tmp_path / "lake", raw=f"segment-logs/{IOS_PROD.id}", start="2026-10-01")
    sent: list[str] = []
    loaded = duplicates = 0
    for files in arrivals(runs.root, TEN_THOUSAND, IOS_PROD, syncs=12):
        report = runs.sync()
        sent += message_ids(runs.root, files)
        loaded, duplicates = loaded + report.row_count, duplicates + report.duplicates
        assert (loaded, duplicates) == (len(set(sent)), len(sent) - len(set(sent)))
    assert len(sent) > 10_000
    assert duplicates > 0.05 * len(sent)
    held = [id for table in runs.tables() for id in runs.ids(table)]
    assert sorted(held) == sorted(set(sent))
