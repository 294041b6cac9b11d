"""The archive: true layout, the same bytes every time, any size."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from eventlake.sample import IOS_PROD, WEB_SHOP, SampleSpec, write_archive
from tests.support.lakes.sample_lake import Written
from tests.support.oracles.recount import judge, lines

SMALL = SampleSpec(days=2, events_per_day=120, files_per_day=3)


def contents(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    write_archive(tmp_path / "here", SMALL)
    program = (
        "import sys; from pathlib import Path; from eventlake.sample import *; "
        "write_archive(Path(sys.argv[1]), "
        "SampleSpec(days=2, events_per_day=120, files_per_day=3))"
    )
    subprocess.run(
        [sys.executable, "-c", program, tmp_path / "there"],
        env={"PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_another_seed_writes_other_bytes_under_other_names(tmp_path: Path) -> None:
    write_archive(tmp_path / "7", SMALL)
    write_archive(tmp_path / "8", replace(SMALL, seed=8))
    raw = [{name for name in contents(tmp_path / seed) if name.endswith(".gz")} for seed in "78"]
    assert raw[0].isdisjoint(raw[1])


def test_fewer_days_are_the_beginning_of_more_days(tmp_path: Path) -> None:
    write_archive(tmp_path / "short", replace(SMALL, days=1))
    write_archive(tmp_path / "long", SMALL)
    assert contents(tmp_path / "short").items() < contents(tmp_path / "long").items()


def test_writing_again_touches_nothing_that_is_there(tmp_path: Path) -> None:
    write_archive(tmp_path, SMALL, arrived=1)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    write_archive(tmp_path, SMALL)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert before.items() < after.items()


def test_files_lie_in_day_folders_and_are_named_by_their_time(written: Written) -> None:
    form = re.compile(r"segment-logs/(wX3mQ8rTz|9IP56Shn6)/(\d{13})/(\d{13})_(\d{13})_\w{12}\.gz")
    for source in (WEB_SHOP, IOS_PROD):
        files = written.account.files[source.id]
        assert {file.path for file in files} == {
            str(path.relative_to(written.root))
            for path in (written.root / "segment-logs" / source.id).rglob("*.gz")
        }
        for file in files:
            match = form.fullmatch(file.path)
            assert match
            folder, start, end = map(int, match.groups()[1:])
            assert datetime.fromtimestamp(folder / 1000, UTC) == datetime(
                *file.folder.timetuple()[:3], tzinfo=UTC
            )
            assert start < end


def test_the_sources_are_a_web_shop_and_an_ios_app() -> None:
    assert (WEB_SHOP.slug, IOS_PROD.slug, IOS_PROD.id) == ("web_shop", "ios_prod", "9IP56Shn6")


def test_a_day_has_the_events_asked_for_in_the_files_and_hours_asked_for(tmp_path: Path) -> None:
    spec = SampleSpec(
        first_day=date(2024, 2, 29),
        days=1,
        events_per_day=1_000,
        files_per_day=6,
        hours=3,
        faults=False,
    )
    account = write_archive(tmp_path, spec)
    for source in account.sources:
        expected = account.expected(source.id)
        assert expected.rows_in == 1_000
        assert len(account.files[source.id]) == 6
        assert {(slot.day, slot.hr) for slot in expected.rows} == {
            ("2024-02-29", "00"),
            ("2024-02-29", "01"),
            ("2024-02-29", "02"),
        }


def test_extra_event_types_become_tables_of_their_own(tmp_path: Path) -> None:
    spec = SampleSpec(days=1, events_per_day=400, extra_events=60, faults=False)
    account = write_archive(tmp_path, spec)
    tables = account.expected(IOS_PROD.id).tables
    assert {f"track_event_{number:04d}" for number in range(1, 61)} < tables.keys()
    file = account.files[IOS_PROD.id][-1]
    found = {judge(line)[1] for line in lines(tmp_path / file.path)}
    assert "track_event_0060" in found


def test_an_event_has_about_a_kilobyte(written: Written) -> None:
    for source in written.account.sources:
        sizes = [
            len(line)
            for file in written.account.files[source.id]
            for line in lines(written.root / file.path)
            if isinstance(line, bytes)
        ]
        assert 1_000 < sum(sizes) / len(sizes) < 1_300


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
