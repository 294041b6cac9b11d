"""The generator's account agrees with a recount of the bytes it wrote."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from eventlake.sample import IOS_PROD, Expected, Load, SampleSpec, history, write_archive
from tests.support.lakes.sample_lake import Written
from tests.support.oracles.recount import Recount, lines, recount

SOURCES = ["wX3mQ8rTz", "9IP56Shn6"]


def agree(expected: Expected, found: Recount) -> None:
    assert expected.rows_in == found.rows_in
    assert expected.rows == found.rows
    assert {tuple(map(str, k)): n for k, n in expected.duplicates.items()} == found.duplicates
    assert expected.rejected == found.rejected


def paths(loads: Sequence[Load]) -> list[list[str]]:
    return [[file.path for file in load] for load in loads]


@pytest.mark.parametrize("source_id", SOURCES)
def test_rows_duplicates_and_rejects_of_the_whole_archive(written: Written, source_id: str) -> None:
    loads = written.account.day_by_day(source_id)
    assert [{file.folder for file in load} for load in loads] == [
        {date(2026, 10, 1)},
        {date(2026, 10, 2)},
        {date(2026, 10, 3)},
    ]
    agree(written.account.expected(source_id), recount(written.root, paths(loads)))


@pytest.mark.parametrize("source_id", SOURCES)
@pytest.mark.parametrize("folders", [[1], [2], [1, 3], [1, 2]])
def test_any_part_of_the_day_folders(written: Written, source_id: str, folders: list[int]) -> None:
    loads = written.account.day_by_day(source_id, [date(2026, 10, day) for day in folders])
    agree(written.account.expected(source_id, loads), recount(written.root, paths(loads)))


@pytest.mark.parametrize("source_id", SOURCES)
def test_every_sync_when_files_are_loaded_as_they_arrive(written: Written, source_id: str) -> None:
    syncs = written.account.as_they_arrive(source_id)
    steps = written.account.per_sync(source_id)
    assert len(steps) == 4  # three days, and the last straggler
    for upto in range(1, len(syncs) + 1):
        loads = [load for sync in syncs[:upto] for load in sync]
        agree(sum(steps[:upto], Expected()), recount(written.root, paths(loads)))


@pytest.mark.parametrize("source_id", SOURCES)
def test_what_was_loaded_first_is_kept_even_if_received_later(
    written: Written, source_id: str
) -> None:
    all_at_once = written.account.expected(source_id)
    as_they_arrive = sum(written.account.per_sync(source_id), Expected())
    assert all_at_once.totals == as_they_arrive.totals
    assert all_at_once.rows != as_they_arrive.rows


@pytest.mark.parametrize("source_id", SOURCES)
def test_rows_are_conserved_per_source_and_per_table(written: Written, source_id: str) -> None:
    for step in history(written.account.day_by_day(source_id)):
        assert step.rows_in == step.totals.rows_in
        homeless = sum(n for reject, n in step.rejected.items() if reject.table is None)
        assert sum(table.rows_in for table in step.tables.values()) + homeless == step.rows_in
        assert step.reasons.total() == step.totals.rejected


@pytest.mark.parametrize("source_id", SOURCES)
def test_lines_and_sizes_of_every_raw_file(written: Written, source_id: str) -> None:
    for file in written.account.files[source_id]:
        found = list(lines(written.root / file.path))
        blank = sum(isinstance(line, bytes) and not line.strip() for line in found)
        assert (file.lines, file.blank) == (len(found), blank)
        assert file.size == (written.root / file.path).stat().st_size


def test_an_id_used_again_after_more_than_a_week_is_a_new_event(tmp_path: Path) -> None:
    account = write_archive(tmp_path, SampleSpec(days=9, events_per_day=60, files_per_day=1))
    for source_id in SOURCES:
        loads = account.day_by_day(source_id)
        agree(account.expected(source_id), recount(tmp_path, paths(loads)))
        wider = sum(history(loads, window_days=9), Expected())
        assert wider.totals.duplicates == account.expected(source_id).totals.duplicates + 1


def test_a_clean_archive_has_rows_and_nothing_else(tmp_path: Path) -> None:
    spec = SampleSpec(days=2, events_per_day=300, faults=False)
    account = write_archive(tmp_path, spec)
    for source_id in SOURCES:
        expected = account.expected(source_id)
        agree(expected, recount(tmp_path, paths(account.day_by_day(source_id))))
        assert (expected.totals.row_count, expected.rows_in) == (600, 600)


def test_so_many_copies_as_asked_for_are_spread_over_the_days(tmp_path: Path) -> None:
    spec = SampleSpec(days=7, events_per_day=200, faults=False, duplicates=0.1)
    account = write_archive(tmp_path, spec, sources=[IOS_PROD])
    assert list(account.files) == [IOS_PROD.id]
    loads = account.day_by_day(IOS_PROD.id)
    expected = account.expected(IOS_PROD.id, loads)
    agree(expected, recount(tmp_path, paths(loads)))
    assert expected.totals.row_count == 1_400
    # Of 140 copies those are missing that would come after the last day.
    assert 100 <= expected.totals.duplicates < 140
    first: dict[str, date] = {}
    days_later = Counter(
        (file.folder - first.setdefault(copy.message_id, file.folder)).days
        for load in loads
        for file in load
        for copy in file.copies
    )
    assert set(days_later) == {0, 1, 2, 3, 4, 5, 6}


def test_the_account_of_a_part_of_the_archive_is_of_that_part(
    written: Written, tmp_path: Path
) -> None:
    two_syncs = write_archive(tmp_path, written.spec, arrived=2)
    for source_id in SOURCES:
        assert two_syncs.per_sync(source_id) == written.account.per_sync(source_id)[:2]


def test_other_seeds_make_other_events_and_still_add_up(tmp_path: Path, written: Written) -> None:
    account = write_archive(tmp_path, replace(written.spec, seed=8, events_per_day=250, days=2))
    for source_id in SOURCES:
        agree(account.expected(source_id), recount(tmp_path, paths(account.day_by_day(source_id))))
