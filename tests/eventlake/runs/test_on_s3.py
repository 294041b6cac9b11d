"""Runs on S3: what they leave is what runs in a folder leave."""

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from eventlake.aws.access import AwsAccess
from eventlake.rules import paths
from eventlake.rules.errors import CommitConflict
from eventlake.runs import placement
from eventlake.sql import LakeSql
from eventlake.state import lease
from eventlake.state.manifest import Manifest, RunKind, commit
from eventlake.storage.s3 import S3Storage
from tests.support.faults.cases import first_sync
from tests.support.faults.failing_storage import Broken, FailingS3Storage, Fault, Faults
from tests.support.lakes.archive import order
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.placed_runs import all_steps, everything
from tests.support.lakes.runs import SOURCE_ID, Runs
from tests.support.servers.aws import SECRET, AwsServer


@pytest.fixture
def folder(tmp_path: Path) -> Runs:
    return Runs(tmp_path / "here")


@pytest.fixture
def bucket(tmp_path: Path, aws: AwsServer) -> Runs:
    """With a role, which is assumed for all that is done."""
    access = AwsAccess(role_arn=aws.role(), external_id="P3IMS7SBDH")
    return Runs(tmp_path / "there", store=S3Storage(f"s3://{aws.bucket()}/lake", access))


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    monkeypatch.setattr(InProcess, "slots", 2)


def test_the_same_archive_makes_the_same_lake_on_s3(folder: Runs, bucket: Runs) -> None:
    for runs in (folder, bucket):
        all_steps(runs)
    here, there = everything(folder), everything(bucket)
    assert len(here["reports"]) == 6
    assert len(here["files"]) > 10
    for what, found in here.items():
        assert there[what] == found, what
    sql = "SELECT * FROM shop.track_order ORDER BY message_id"
    answers = [LakeSql(runs.catalog, runs.storage).query(sql) for runs in (folder, bucket)]
    assert answers[0] == answers[1]
    assert answers[0]["message_id"].to_pylist() == ["m1", "m3", "m4", "m5"]


def test_no_secret_is_in_lake_or_log(bucket: Runs, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="eventlake"):
        first_sync(bucket)
    assert isinstance(bucket.storage, S3Storage)
    keys = bucket.storage.access.credentials()
    files = [file.path for file in bucket.storage.files("")]
    texts = [*bucket.logged, *bucket.warnings, caplog.text, bucket.storage, bucket.settings]
    written = [*bucket.storage.read_many(files), *(f"{text!r}".encode() for text in texts)]
    for secret in (SECRET, keys.secret_key, keys.token):
        assert not any(secret.encode() in (content or b"") for content in written)


def test_one_of_two_commits_of_one_number_wins(bucket: Runs) -> None:
    start = threading.Barrier(8)

    def writer(me: int) -> str:
        context = bucket.context()
        manifest = Manifest(1, SOURCE_ID, RunKind.SYNC, context.facts, "day/hour", "native")
        start.wait()
        try:
            commit(bucket.storage, manifest)
        except CommitConflict:
            return ""
        return context.run_id

    with ThreadPoolExecutor(8) as pool:
        [winner] = filter(None, pool.map(writer, range(8)))
    data = bucket.storage.read(paths.manifest(SOURCE_ID, 1)) or b""
    assert json.loads(data)["run"]["run_id"] == winner


def test_concurrent_syncs_load_events_once(bucket: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lease, so that only the commit keeps them apart."""
    monkeypatch.setattr("eventlake.runs.run.held_lease", lambda *_: threading.Lock())
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        bucket.archive.day(day).file("a", order(f"m{day}", f"{day}T07:00", price=1))
    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(bucket.sync) for _ in range(3)]:
            done.result()
    assert bucket.ids("track_order") == ["m2026-10-01", "m2026-10-02", "m2026-10-03"]
    assert sum(lines[0]["row_count"] for lines in bucket.reports().values()) == 3
    assert bucket.storage.files("segment-stage") == []


def test_uploads_of_a_run_that_died_are_aborted_by_the_next(
    aws: AwsServer, bucket: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, whole = aws.client("s3"), bucket.storage
    for key in ("segment-stage/S1/R1/0/x", "segment-data/data/S1/versions/R1/x", "elsewhere/R1/x"):
        client.create_multipart_upload(Bucket="lake-bucket", Key=f"lake/{key}")
    bucket.storage = FailingS3Storage(whole.uri, faults=Faults(Fault.DEATH, at=6))
    with pytest.raises(Broken), monkeypatch.context() as patch:
        patch.setattr(lease, "LIFETIME", timedelta(0))
        first_sync(bucket)
    bucket.storage = whole
    bucket.sync()
    left = client.list_multipart_uploads(Bucket="lake-bucket").get("Uploads", [])
    assert [upload["Key"] for upload in left] == ["lake/elsewhere/R1/x"]
    assert [lines[0]["status"] for lines in bucket.reports().values()] == ["failed", "finished"]


def test_a_missing_raw_archive_is_reported_with_its_location(bucket: Runs) -> None:
    with pytest.raises(Exception, match=r"s3://lake-bucket/lake/segment-logs/S1 does not exist"):
        bucket.sync()
    bucket.storage.write("segment-logs/S1/", b"")  # as the console makes an empty folder
    bucket.sync()
    assert bucket.warnings == ["segment-logs/S1 holds no raw files yet."]
