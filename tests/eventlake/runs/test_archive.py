"""Raw archives: what lies there and is not taken, and archives outside the lake."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from datalake_assets.preflight.archive import archive_findings
from eventlake.audit.audit import audit
from eventlake.audit.snapshot import EVERYTHING, Scope
from eventlake.aws.access import forget_sessions
from eventlake.checks.freshness import check_freshness
from eventlake.lake import Lake
from eventlake.records.logs import run_log, run_logs, search
from eventlake.records.payloads import with_payloads
from eventlake.rules import clock
from eventlake.rules.errors import CheckFailed, InsufficientPermissions, LakeError, UsageError
from eventlake.rules.text import plural
from eventlake.runs.archive import archive_storage
from eventlake.status import SourceStatus, source_status
from tests.support.aws.enforced import User, enforced
from tests.support.lakes.archive import Archive, track
from tests.support.lakes.runs import Runs, utc
from tests.support.servers.aws import AwsServer

DAY = "2026-10-01"


def order(id: str, at: str = f"{DAY}T07:00") -> dict[str, object]:
    return track("Order", id, at)


def looked_at(runs: Runs) -> tuple[SourceStatus, str]:
    """What `status` and `check` say of the archive."""
    lake = Lake.open(runs.settings)
    finding = next(archive_findings(lake, runs.source))
    return source_status(lake, runs.source, clock.now()), f"{finding.sign} {finding.message}"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("10-01-2026/x.json.gz", "1 file not in a day folder, such as {}"),
        ("2026/10/01/x.jsonl", "1 file not in a day folder, such as {}"),
        ("x.gz", "1 file not in a day folder, such as {}"),
        ("1790812800000/x.parquet", "1 file in a format that is not read, such as {}"),
        ("1790812800000/x.json.zst", "1 file in a format that is not read, such as {}"),
        ("1790812800000/X.JSON.GZ", "1 file in a format that is not read, such as {}"),
    ],
)
def test_an_archive_in_which_nothing_is_recognised_is_an_error(
    runs: Runs, path: str, why: str
) -> None:
    file = runs.archive.folder / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b"{}")
    with pytest.raises(UsageError, match=r"source 'shop' is recognised.*Set `raw`") as refused:
        runs.sync()
    assert why.format(f"segment-logs/S1/{path}") in str(refused.value)
    assert list(runs.root.iterdir()) == [runs.root / "segment-logs"]
    status, check = looked_at(runs)
    assert (status.waiting.problem, check) == (str(refused.value), f"✗ {refused.value}")


def test_files_beside_the_day_folders_are_counted_and_named_everywhere(runs: Runs) -> None:
    day = runs.archive.day(DAY)
    day.file("a", order("m1"))
    day.raw("dummy-object.txt", b"")
    for name in ("10-01-2026/y.json.gz", "10-02-2026/z.json.gz"):
        stray = runs.archive.folder / name
        stray.parent.mkdir()
        stray.write_bytes(b"")
    example = "segment-logs/S1/10-01-2026/y.json.gz"
    lost = f"2 files not in a day folder, such as {example}"
    normal = "1 file not named like a raw file, such as segment-logs/S1/1790812800000/dummy"
    runs.sync()
    assert runs.warnings == [f"Not loaded: {lost}."]
    [[line, _]] = runs.reports().values()
    assert (line["ignored_files"], line["ignored"][0]) == (3, lost)
    assert line["ignored"][1].startswith(normal)
    status, check = looked_at(runs)
    assert next((str(one), one.expected) for one in status.waiting.ignored) == (lost, False)
    assert check.startswith("! 1 file,") and lost in check


def test_a_day_folder_before_the_first_day_of_the_source_is_not_silent(runs: Runs) -> None:
    runs.load(DAY, order("m1"))
    runs.load("2026-09-30", order("m0", "2026-09-30T07:00"), name="old")
    assert runs.warnings == [
        "Not loaded: 1 file in day folders before the source's first day, 2026-10-01, such as "
        "segment-logs/S1/1790726400000/old.gz."
    ]
    runs.warnings.clear()
    runs.set(start=DAY)  # then it is meant so
    runs.sync()
    assert runs.warnings == []


def test_a_changed_slug_warns_that_tables_move(runs: Runs) -> None:
    runs.load(DAY, order("m1"))
    runs.set(slug="store")
    status, _ = looked_at(runs)
    moved = (
        "its tables (1) are in database shop and stay there; from now on syncs write to new tables"
    )
    assert str(status.moved).startswith(f"{moved} in store. To stay with them")
    found = {f.what: f for f in archive_findings(Lake.open(runs.settings), runs.source)}
    assert (found["tables of store"].level, found["tables of store"].message) == (
        "warning",
        status.moved,
    )
    runs.load(DAY, order("m2"), name="b")
    assert runs.warnings == [f"Source 'store' has a new place: {status.moved}."]
    assert (looked_at(runs)[0].moved, runs.ids("track_order")) == (None, ["m2"])


class Elsewhere:
    """An archive outside the lake, which takes what is written to a folder."""

    def __init__(self, runs: Runs, folder: Path, **raw: Any) -> None:
        self.archive = Archive(folder)
        runs.set(**raw)
        self.raw = runs.source.raw

    def carry(self) -> None: ...


def in_a_folder(runs: Runs, tmp_path: Path, aws: AwsServer) -> Elsewhere:
    return Elsewhere(runs, tmp_path / "raw", raw=f"{tmp_path}/raw/")


def in_a_bucket(runs: Runs, tmp_path: Path, aws: AwsServer) -> Elsewhere:
    bucket = aws.bucket("raw-bucket", region="us-west-2")
    role = aws.role("raw-reader", external_id="W1")
    aws.client("iam").put_role_policy(
        RoleName="raw-reader", PolicyName="own", PolicyDocument=READ_ONLY
    )

    class Bucket(Elsewhere):
        def carry(self) -> None:
            for file in self.archive.folder.rglob("*.gz"):
                key = f"exports/S1/{file.relative_to(self.archive.folder)}"
                aws.put(bucket, {key: file.read_bytes()})

    return Bucket(runs, tmp_path / "carried", raw=f"s3://{bucket}/exports/S1", raw_role_arn=role)


READ_ONLY = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::raw-bucket"},
            {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::raw-bucket/*"},
        ],
    }
)


@pytest.mark.parametrize("place", [in_a_folder, in_a_bucket])
def test_an_archive_elsewhere_is_read_there_by_all_and_never_written(
    tmp_path: Path, aws: AwsServer, monkeypatch: pytest.MonkeyPatch, place: Any
) -> None:
    runs = Runs(tmp_path / "lake")
    there = place(runs, tmp_path, aws)
    denied = ("s3:* arn:aws:s3:::raw-bucket", "s3:* arn:aws:s3:::raw-bucket/*")
    user = User(aws, denied)  # who may read the archive by its role only
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    forget_sessions()
    with enforced(aws):
        with pytest.raises(UsageError, match=f"{there.raw} does not exist"):
            runs.sync()
        there.archive.day(DAY).file("a", order("m1"), order("m1"), "no json", order("m2"))
        there.carry()
        assert runs.sync().rows_in == 4
        assert runs.sync().rows_in == 0
        files = {entry for entry, _, _ in runs.records()}
        assert files == {f"{there.raw}/1790812800000/a.gz"}

        lake = Lake.open(runs.settings)
        log = run_log(lake, [runs.source], "R2")
        records = [r for _, t in search(lake.storage, log.files, "m2") for r in t.to_pylist()]
        raw = archive_storage(lake.storage, runs.source)
        logs = run_logs(lake, runs.source)
        limits = runs.source.limits
        [shown], problems = with_payloads(lake.storage, logs, records, limits, None, raw)
        assert (json.loads(shown["record_payload"])["messageId"], problems) == ("m2", [])
        assert audit(lake, Scope(runs.source, EVERYTHING)).agrees

        there.archive.day("2026-10-02").file("late", order("m3"))
        there.carry()
        status, check = looked_at(runs)
        assert status.waiting.files == 1
        assert check.endswith("waiting for a sync: 1")
        runs.replay("2026-10-01", "2026-10-02")
        assert runs.ids("track_order") == ["m1", "m2", "m3"]
        if "://" in there.raw:
            with pytest.raises(InsufficientPermissions, match=r"s3:PutObject on .*raw-bucket"):
                raw.write("x", b"")
    forget_sessions()
    assert not (tmp_path / "lake" / "segment-logs").exists()


def test_a_bucket_that_is_not_there_is_a_wrong_raw(tmp_path: Path, aws: AwsServer) -> None:
    runs = Runs(tmp_path, raw="s3://no-such-bucket/x")
    with pytest.raises(LakeError, match=r"no-such-bucket does not exist.*`raw`"):
        runs.sync()


def lines(bad: int, good: int) -> list[dict[str, object] | str]:
    return [*["{}"] * bad, *(order(f"m{n}") for n in range(good))]


@pytest.mark.parametrize(
    ("bad", "good", "most", "fails"),
    [(51, 49, 50, True), (50, 50, 50, False), (99, 0, 50, False), (60, 60, 49.9, True),
     (100, 0, 100, False), (1, 99, 0, True)],
)  # fmt: skip
def test_a_sync_that_rejects_most_rows_fails_and_reads_them_again(
    runs: Runs, bad: int, good: int, most: float, fails: bool
) -> None:
    runs.set(fail_above_rejected_percent=most)
    day = runs.archive.day(DAY)
    day.file("a", *lines(bad, good))
    if not fails:
        assert runs.sync().row_count == good
        return
    with pytest.raises(CheckFailed) as failure:
        runs.sync()
    said = str(failure.value)
    assert f"{bad} of {bad + good} rows were rejected" in said
    assert (
        f"{plural(bad, 'row')} rejected, the first in segment-logs/S1/1790812800000/a.gz line 1: "
        in said
    )
    [[line]] = runs.reports().values()
    assert (line["status"], line["error"], line["rows_in"]) == ("failed", said, 0)
    assert (runs.ledger(), runs.tables(), runs.records()) == ({}, [], [])
    day.file("a", *lines(0, 200))
    assert runs.sync().row_count == 200


@pytest.mark.parametrize(("files", "fails"), [(1, True), (2, True), (3, False)])
def test_bad_files_cost_themselves_unless_most_are_bad(runs: Runs, files: int, fails: bool) -> None:
    """One file with a thousand bad lines or two, beside some with a good line each."""
    day = runs.archive.day(DAY)
    for number in range(max(1, 4 - files)):
        day.file(f"bad{number}", *lines(500, 0))
    for number in range(files - 1):
        day.file(f"good{number}", order(f"m{number}"))
    if fails:
        with pytest.raises(CheckFailed, match="rows were rejected"):
            runs.sync()
        assert runs.ledger() == {}
        return
    assert (runs.sync().row_count, looked_at(runs)[0].failing) == (files - 1, None)


def test_a_rejected_share_is_in_status_until_a_sync_without(runs: Runs) -> None:
    day = runs.archive.day(DAY)
    day.file("a", *lines(2, 100))
    runs.sync()
    runs.sync()  # finds nothing new
    status, _ = looked_at(runs)
    assert status.last_load is not None
    assert (status.last_load.run_id, status.last_load.source.rejected) == ("R1", 2)
    day.file("b", order("m200"))
    runs.sync()
    assert (looked_at(runs)[0].last_load or status.last_load).run_id == "R3"


def test_an_event_from_the_future_is_no_sign_of_life(runs: Runs) -> None:
    day = runs.archive.day(DAY)
    day.file("a", order("m1"), order("m2", "9999-12-31T23:59"))
    runs.sync()
    status, _ = looked_at(runs)
    assert status.loaded_until == utc("2026-10-01T08:00")
    fresh = check_freshness(Lake.open(runs.settings), runs.source, utc("2026-10-21"))
    assert fresh.evidence["newest_hour"] == "2026-10-01T07"


def test_days_far_from_the_day_folder_are_limited_and_the_nearest_are_kept(runs: Runs) -> None:
    runs.set(limits={"days": 2}, fail_above_rejected_percent=100)
    near = ["2026-09-30", "2026-10-01", "2026-10-02"]
    far = ["2026-10-03", "2026-09-28", "2026-09-01", "1970-01-01", "9999-12-31"]
    days = runs.archive.day(DAY).file("a", *(order(d, f"{d}T07:00") for d in [*far, *near]))
    report = runs.sync()
    assert runs.ids("track_order") == sorted([*near, *far[:2]])
    assert (report.rejected, days.exists()) == (3, True)
    assert any("beyond the limit `days`: 2026-09-01T07:00" in text for text in report.warnings)
    assert len(runs.ledger()["a.gz"].hours) == 5
    assert audit(Lake.open(runs.settings), Scope(runs.source, EVERYTHING)).agrees


def test_rows_beyond_a_limit_count_for_the_rejected_share(runs: Runs) -> None:
    runs.set(limits={"days": 10})
    day = runs.archive.day(DAY)
    first = utc("2020-01-01")
    days = [f"{first + timedelta(days=n):%Y-%m-%d}" for n in range(120)]
    day.file("a", *(order(at, f"{at}T07:00") for at in days))
    with pytest.raises(CheckFailed, match="beyond the limit `days`"):
        runs.sync()
    for name in ("b", "c"):
        day.file(name, order(name, f"{DAY}T07:00"))
    assert runs.sync().row_count == 12
