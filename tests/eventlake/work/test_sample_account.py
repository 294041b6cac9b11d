"""A whole sample archive, sync by sync: every count is the generator's own."""

from collections import Counter
from pathlib import Path

import pytest

from eventlake.sample import SampleSource, SampleSpec, write_archive
from tests.support.lakes.runs import Runs

SPEC = SampleSpec(days=3, events_per_day=400, files_per_day=3, hours=5)


@pytest.mark.parametrize("sample", SPEC.sources, ids=lambda sample: str(sample.slug))
def test_every_sync_counts_as_the_account_does(tmp_path: Path, sample: SampleSource) -> None:
    account = write_archive(tmp_path / "whole", SPEC)
    runs = Runs(tmp_path / "lake", raw=f"segment-logs/{sample.id}")
    rows: Counter[tuple[str, ...]] = Counter()
    for arrived, expected in enumerate(account.per_sync(sample.id), start=1):
        write_archive(runs.root, SPEC, arrived=arrived)
        report = runs.sync()

        totals = expected.totals
        assert (report.row_count, report.duplicates, report.rejected) == (
            totals.row_count,
            totals.duplicates,
            totals.rejected,
        )
        other = Counter(
            {
                duplicate.table: count
                for duplicate, count in expected.duplicates.items()
                if duplicate.likeness == "other payload"
            }
        )
        found = {t.table: t.other_payload for t in report.tables.values() if t.other_payload}
        assert found == {table: count for table, count in other.items() if table in runs.tables()}
        rows += Counter({(s.table, s.day, s.hr): n for s, n in expected.rows.items()})
        assert rows == {
            (table, *values): partition.rows
            for table in runs.tables()
            for values, partition in runs.partitions(table).items()
        }
