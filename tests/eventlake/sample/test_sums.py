"""Row counts, null counts and sums of a large archive, held to the raw JSON, column by column."""

from collections import Counter
from pathlib import Path

import pytest

from eventlake.sample import IOS_PROD, WEB_SHOP, SampleSource, SampleSpec, write_archive
from tests.support.lakes.archive import arrivals, message_ids
from tests.support.lakes.jobs import lake_sums
from tests.support.lakes.runs import Runs
from tests.support.oracles.recount import raw_sums

TWENTY_THOUSAND = SampleSpec(days=2, events_per_day=5_000, hours=1)  # of each of two sources


@pytest.mark.parametrize("source", [WEB_SHOP, IOS_PROD], ids=lambda source: source.slug)
def test_every_column_has_the_sum_of_the_raw_json(tmp_path: Path, source: SampleSource) -> None:
    generated = write_archive(tmp_path, TWENTY_THOUSAND, sources=[source])
    runs = Runs(tmp_path, raw=f"segment-logs/{source.id}", unit_bytes=10**9)
    report = runs.sync()

    loads = generated.at_once(source.id)
    wanted = raw_sums(tmp_path, ([file.path for file in load] for load in loads))
    assert report.row_count > 10_000
    assert lake_sums(runs.catalog, runs.storage, "shop") == wanted


SPEC = SampleSpec(days=3, events_per_day=400, files_per_day=3, hours=5)


@pytest.mark.parametrize("sample", SPEC.sources, ids=lambda sample: str(sample.slug))
def test_every_sync_counts_as_expected(tmp_path: Path, sample: SampleSource) -> None:
    generated = write_archive(tmp_path / "whole", SPEC)
    runs = Runs(tmp_path / "lake", raw=f"segment-logs/{sample.id}", unit_bytes=10**9)
    rows: Counter[tuple[str, ...]] = Counter()
    for arrived, expected in enumerate(generated.per_sync(sample.id), start=1):
        write_archive(runs.root, SPEC, arrived=arrived)
        report = runs.sync()

        for count in ("row_count", "duplicates", "rejected"):
            assert getattr(report, count) == getattr(expected.totals, count)
        found = {t.table: t.other_payload for t in report.tables.values() if t.other_payload}
        assert found == {
            duplicate.table: count
            for duplicate, count in expected.duplicates.items()
            if duplicate.likeness == "other payload" and duplicate.table in runs.tables()
        }
        rows += Counter({(s.table, s.day, s.hr): n for s, n in expected.rows.items()})
        partitions = ((table, runs.partitions(table).items()) for table in runs.tables())
        assert rows == {(t, *values): p.rows for t, held in partitions for values, p in held}


TEN_THOUSAND = SampleSpec(
    days=7, events_per_day=1_400, files_per_day=4, hours=1, faults=False, duplicates=0.08
)


def test_exactly_the_distinct_ids_of_seven_days_are_in_the_lake(tmp_path: Path) -> None:
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
