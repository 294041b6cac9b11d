"""The sample archive agrees with a recount; odd values and broken lines are in it."""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from eventlake.sample import (
    IOS_PROD,
    WEB_SHOP,
    Expected,
    Load,
    Reason,
    SampleArchive,
    SampleSpec,
    history,
    write_archive,
)
from eventlake.sample.archive import write_if_different
from tests.support.oracles.recount import CUT_END, Recount, hashed, judge, lines, recount

SOURCES = ["wX3mQ8rTz", "9IP56Shn6"]


@dataclass(frozen=True)
class Written:
    """A small archive, written once for all tests."""

    root: Path
    spec: SampleSpec
    generated: SampleArchive


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    root, spec = tmp_path_factory.mktemp("sample"), SampleSpec(days=3, events_per_day=700)
    return Written(root, spec, write_archive(root, spec))


def agree(expected: Expected, found: Recount) -> None:
    assert expected.rows_in == found.rows_in
    assert expected.rows == found.rows
    assert {tuple(map(str, k)): n for k, n in expected.duplicates.items()} == found.duplicates
    assert expected.rejected == found.rejected


def paths(loads: Sequence[Load]) -> list[list[str]]:
    return [[file.path for file in load] for load in loads]


@pytest.mark.parametrize("source_id", SOURCES)
def test_rows_duplicates_and_rejects_of_the_whole_archive(written: Written, source_id: str) -> None:
    loads = written.generated.at_once(source_id)
    folders = [{file.folder for file in load} for load in loads]
    assert folders == [{date(2026, 10, day) for day in (1, 2, 3)}]
    agree(written.generated.expected(source_id), recount(written.root, paths(loads)))


@pytest.mark.parametrize("source_id", SOURCES)
@pytest.mark.parametrize("folders", [[1], [2], [1, 3], [1, 2]])
def test_any_part_of_the_day_folders(written: Written, source_id: str, folders: list[int]) -> None:
    loads = written.generated.at_once(source_id, [date(2026, 10, day) for day in folders])
    agree(written.generated.expected(source_id, loads), recount(written.root, paths(loads)))


@pytest.mark.parametrize("source_id", SOURCES)
def test_every_sync_when_files_are_loaded_as_they_arrive(written: Written, source_id: str) -> None:
    syncs = written.generated.as_they_arrive(source_id)
    steps = written.generated.per_sync(source_id)
    assert len(steps) == 4  # three days, and the last straggler
    for upto in range(1, len(syncs) + 1):
        agree(sum(steps[:upto], Expected()), recount(written.root, paths(syncs[:upto])))
    # What was loaded first is kept, even if it was received later.
    all_at_once, as_they_arrive = written.generated.expected(source_id), sum(steps, Expected())
    assert all_at_once.totals == as_they_arrive.totals
    assert all_at_once.rows != as_they_arrive.rows


@pytest.mark.parametrize("source_id", SOURCES)
def test_rows_are_conserved_per_source_and_per_table(written: Written, source_id: str) -> None:
    for step in history(written.generated.at_once(source_id)):
        assert step.rows_in == step.totals.rows_in
        homeless = sum(n for reject, n in step.rejected.items() if reject.table is None)
        assert sum(table.rows_in for table in step.tables.values()) + homeless == step.rows_in
        assert step.reasons.total() == step.totals.rejected


@pytest.mark.parametrize("source_id", SOURCES)
def test_lines_and_sizes_of_every_raw_file(written: Written, source_id: str) -> None:
    for file in written.generated.files[source_id]:
        found = list(lines(written.root / file.path))
        blank = sum(isinstance(line, bytes) and not line.strip() for line in found)
        assert (file.lines, file.blank) == (len(found), blank)
        assert file.size == (written.root / file.path).stat().st_size


def test_an_id_used_again_after_more_than_a_week_is_a_new_event(tmp_path: Path) -> None:
    generated = write_archive(tmp_path, SampleSpec(days=9, events_per_day=60, files_per_day=1))
    for source_id in SOURCES:
        loads = generated.at_once(source_id)
        agree(generated.expected(source_id), recount(tmp_path, paths(loads)))
        wider = sum(history(loads, window_days=9), Expected())
        assert wider.totals.duplicates == generated.expected(source_id).totals.duplicates + 1


def test_a_clean_archive_has_rows_and_nothing_else(tmp_path: Path) -> None:
    spec = SampleSpec(days=2, events_per_day=300, faults=False)
    generated = write_archive(tmp_path, spec)
    for source_id in SOURCES:
        expected = generated.expected(source_id)
        agree(expected, recount(tmp_path, paths(generated.at_once(source_id))))
        assert (expected.totals.row_count, expected.rows_in) == (600, 600)


def test_requested_duplicates_are_spread_over_the_days(tmp_path: Path) -> None:
    spec = SampleSpec(days=7, events_per_day=200, faults=False, duplicates=0.1)
    generated = write_archive(tmp_path, spec, sources=[IOS_PROD])
    assert list(generated.files) == [IOS_PROD.id]
    loads = generated.at_once(IOS_PROD.id)
    expected = generated.expected(IOS_PROD.id, loads)
    agree(expected, recount(tmp_path, paths(loads)))
    assert expected.totals.row_count == 1_400
    # Of 140 copies those are missing that would come after the last day.
    assert 100 <= expected.totals.duplicates < 140
    first: dict[str, date] = {}
    copies = ((file.folder, copy) for load in loads for file in load for copy in file.copies)
    days_later = Counter((day - first.setdefault(one.message_id, day)).days for day, one in copies)
    assert set(days_later) == {0, 1, 2, 3, 4, 5, 6}


def test_a_part_of_an_archive_has_its_own_results(written: Written, tmp_path: Path) -> None:
    two_syncs = write_archive(tmp_path, written.spec, arrived=2)
    for source_id in SOURCES:
        assert two_syncs.per_sync(source_id) == written.generated.per_sync(source_id)[:2]


def test_other_seeds_make_other_events_and_still_add_up(tmp_path: Path, written: Written) -> None:
    generated = write_archive(tmp_path, replace(written.spec, seed=8, events_per_day=250, days=2))
    for source_id in SOURCES:
        agree(generated.expected(source_id), recount(tmp_path, paths(generated.at_once(source_id))))


SMALL = SampleSpec(days=2, events_per_day=120, files_per_day=3)


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    write_archive(tmp_path / "here", SMALL)
    program = (
        "import sys; from pathlib import Path; from eventlake.sample import *; "
        "write_archive(Path(sys.argv[1]), "
        "SampleSpec(days=2, events_per_day=120, files_per_day=3))"
    )
    env = {"PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, tmp_path / "there"], env=env, check=True)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_fewer_days_are_the_beginning_of_more_days(tmp_path: Path) -> None:
    write_archive(tmp_path / "short", replace(SMALL, days=1))
    write_archive(tmp_path / "long", SMALL)
    assert contents(tmp_path / "short").items() < contents(tmp_path / "long").items()


def times(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


def test_writing_again_touches_nothing_that_is_there(tmp_path: Path) -> None:
    write_archive(tmp_path, SMALL, arrived=1)
    before = times(tmp_path)
    write_archive(tmp_path, SMALL)
    assert before.items() < times(tmp_path).items()


def test_a_day_has_the_requested_events_files_and_hours(tmp_path: Path) -> None:
    usual = SampleSpec(days=1, events_per_day=1_000, files_per_day=6, hours=3, faults=False)
    generated = write_archive(tmp_path, replace(usual, first_day=date(2024, 2, 29)))
    for source in generated.sources:
        expected = generated.expected(source.id)
        assert expected.rows_in == 1_000
        assert len(generated.files[source.id]) == 6
        found = {(slot.day, slot.hr) for slot in expected.rows}
        assert found == {("2024-02-29", hour) for hour in ("00", "01", "02")}


def test_extra_event_types_become_tables_of_their_own(tmp_path: Path) -> None:
    spec = SampleSpec(days=1, events_per_day=400, extra_events=60, faults=False)
    generated = write_archive(tmp_path, spec)
    tables = generated.expected(IOS_PROD.id).tables
    assert {f"track_event_{number:04d}" for number in range(1, 61)} < tables.keys()
    file = generated.files[IOS_PROD.id][-1]
    found = {judge(line)[1] for line in lines(tmp_path / file.path)}
    assert "track_event_0060" in found


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"days": 0}, "days is 0; it may be 1 to"),
        ({"events_per_day": 0}, "events_per_day is 0"),
        ({"files_per_day": 0}, "files_per_day is 0"),
        ({"hours": 25}, "hours is 25; it may be 1 to 24"),
        ({"extra_events": -1}, "extra_events is -1"),
        ({"duplicates": 0.6}, "duplicates is 0.6; it may be 0 to 0.5"),
    ],
)
def test_a_size_out_of_range_is_refused(wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SampleSpec(**wrong)  # type: ignore[arg-type]


Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def raw(written: Written) -> list[bytes]:
    """All lines of all files."""
    files = (file for files in written.generated.files.values() for file in files)
    found = (line for file in files for line in lines(written.root / file.path))
    return [line for line in found if line is not CUT_END]


def events_of(written: Written, source_id: str, day: int | None = None) -> Events:
    """What is readable, of all folders or of one."""
    files = (f for f in written.generated.files[source_id] if day in (None, f.folder.day))
    judged = (judge(line) for file in files for line in lines(written.root / file.path))
    return [event for reason, _, event in judged if reason is None]


def properties(events: Events, name: str, key: str) -> list[Any]:
    found = (event["properties"] for event in events if event.get("event") == name)
    return [values[key] for values in found if key in values]


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("Order Completed", "track_order_completed"),
        ("order_completed", "track_order_completed"),
        ("OrderCompleted", "track_order_completed"),
        ("2FA Enabled", "track_2fa_enabled"),
        ("A/B Test", "track_a_b_test"),
        ("注册", f"track_{hashed('注册')}"),
        ("iOS Permission Granted", "track_i_os_permission_granted"),
    ],
)
def test_names_that_need_the_name_rule(written: Written, name: str, table: str) -> None:
    assert any(event.get("event") == name for event in events_of(written, IOS_PROD.id))
    assert table in written.generated.expected(IOS_PROD.id).tables


@pytest.mark.parametrize(
    "written_as",
    [
        rb'"total":\d+\.\d[,}]',  # money as 12.5
        rb'"total":\d+\.\d0[,}]',  # and as 12.50
        rb'"lat":-?\d+\.\d{8}[,}]',
        rb'"delivery_date":"\d{4}-\d\d-\d\d"',
        rb'"productID":"',
        rb'"products":\[\{"product_id":',
        rb'"location":\{"lat":',
        '"firstName":"李雷"'.encode(),
        "🎉".encode(),
        rb'"options":\{\}',
        rb'"coupon":""',
        rb'"coupon":null',
        rb'"note":"a\\u0000b"',
        "one\u2028line".encode(),
        rb'"exponent":1e3,"tenth":0\.10,"zero":-0',
        rb'"huge":18446744073709551616',
        rb'"plan":"old","plan":"new"',
        rb'"type":"TRACK"',
        rb'"messageId":\d+,',
        rb'"receivedAt":"[^"]+\+02:00"',
        rb"^  \{.*\} \r$",
        rb'"productID":"[^"]+","position":\d+,"product_id":"legacy',
    ],
)
def test_odd_values_are_in_the_sample(raw: list[bytes], written_as: bytes) -> None:
    pattern = re.compile(written_as)
    assert any(pattern.search(line) for line in raw)


@pytest.mark.parametrize(
    "is_broken",
    [
        lambda line: line.startswith(b"<html>"),
        lambda line: line.endswith(b"} and more"),
        lambda line: b'"ratio":NaN' in line,
        lambda line: b'"\\ud83d"' in line,
        lambda line: b"Z\xfcrich" in line,
        lambda line: b'"type":"delete"' in line,
        lambda line: b'"receivedAt":"yesterday"' in line,
        lambda line: line == b"[1,2,3]",
    ],
)
def test_broken_lines_on_every_day(raw: list[bytes], is_broken: Callable[[bytes], bool]) -> None:
    assert sum(map(is_broken, raw)) == 3 * 2


@pytest.mark.parametrize("blank", [b"", b"   ", b"\r", b"\t "])
def test_blank_lines_on_every_day(raw: list[bytes], blank: bytes) -> None:
    assert raw.count(blank) == 3 * 2


def test_every_reason_to_reject_occurs(written: Written) -> None:
    for source in written.generated.sources:
        assert written.generated.expected(source.id).reasons.keys() == set(Reason)


def test_a_file_of_the_first_day_is_cut_off(written: Written) -> None:
    for source in written.generated.sources:
        cut = [
            file.folder.day
            for file in written.generated.files[source.id]
            if CUT_END in list(lines(written.root / file.path))
        ]
        assert cut == [1]


@pytest.mark.parametrize(
    ("source_id", "table", "name", "column"),
    [
        (WEB_SHOP.id, "track_gift_card_redeemed", "Product Viewed", "inStock"),
        (IOS_PROD.id, "track_widget_added", "Order Completed", "loyalty"),
    ],
)
def test_a_table_and_a_property_appear_on_the_second_day(
    written: Written, source_id: str, table: str, name: str, column: str
) -> None:
    first, second = written.generated.per_sync(source_id)[:2]
    assert (table in first.tables, table in second.tables) == (False, True)
    seen = [properties(events_of(written, source_id, day), name, column) for day in (1, 2)]
    assert (bool(seen[0]), bool(seen[1])) == (False, True)


@pytest.mark.parametrize(
    ("name", "key"), [("Product Added", "quantity"), ("Checkout Step Viewed", "step")]
)
def test_a_number_is_also_text_on_the_second_day(written: Written, name: str, key: str) -> None:
    days = [properties(events_of(written, WEB_SHOP.id, day), name, key) for day in (1, 2)]
    assert [{type(value) for value in day} for day in days] == [{int}, {int, float, str}]


def test_a_file_with_other_bytes_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "day" / "a.gz"
    assert write_if_different(path, [b"one", b"two"]) == 6
    assert write_if_different(path, [b"three"]) == 5
    assert path.read_bytes() == b"three"
    assert [found.name for found in path.parent.iterdir()] == ["a.gz"]
