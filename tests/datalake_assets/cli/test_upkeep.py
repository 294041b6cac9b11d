"""The commands `upkeep`, `recover` and `aws`."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.open_runs import OpenRun
from eventlake.sample import IOS_PROD
from eventlake.state.lease import Holder, Lease, myself
from eventlake.state.report import RunFacts
from eventlake.storage.documents import encode
from tests.support.lakes.jobs import SampleLake
from tests.support.lakes.settings import lake_in
from tests.support.servers.aws import REGION, AwsServer
from tests.support.terminal import datalake, everything_below


def compact_all(filled: SampleLake) -> None:
    """Settings by which every partition of two files is compacted."""
    file = filled.folder / "lake.yaml"
    file.write_text(file.read_text() + "compaction: {min_files: 2}\n")


def test_a_dry_run_shows_the_work_and_does_nothing(filled: SampleLake) -> None:
    compact_all(filled)
    before = everything_below(filled.folder)
    result = datalake("upkeep", "--dry-run", "--source", "web_shop")
    assert result.out.splitlines()[0] == "web_shop: what an upkeep would do"
    assert "would be compacted" in result.out
    assert everything_below(filled.folder) == before


@pytest.mark.usefixtures("in_process")
def test_upkeep_compacts_reports_and_is_done_once(filled: SampleLake) -> None:
    compact_all(filled)
    rows = datalake("sql", "select count(*) n from web_shop.page", "--json").json
    result = datalake("upkeep", "--source", "web_shop")
    head, *table = result.out.splitlines()
    assert head == "web_shop"
    kinds = {line.split("  ")[0].strip() for line in table}
    assert {"data", "record log", "id index", "manifests", "staging"} <= kinds
    assert "compacted" in result.out
    assert datalake("sql", "select count(*) n from web_shop.page", "--json").json == rows
    again = datalake("upkeep", "--source", "web_shop", "--json")
    [report] = again.json
    assert (report["source"], report["compacted"]["partitions"]) == ("web_shop", 0)
    assert report["before"]["data"]["files"] == report["after"]["data"]["files"] > 0


GONE = Holder("another-machine", 7, datetime.now(UTC) - timedelta(minutes=5))


def leave_dead_run(lake: Lake, run_id: str = "17") -> None:
    """A sync of `ios_prod` that died while it held the lease."""
    facts = RunFacts("W1", IOS_PROD.id, "ios_prod", run_id, datetime.now(UTC), "")
    storage = lake.storage
    storage.write(paths.open_run(IOS_PROD.id, run_id), encode(OpenRun(facts, 0, GONE)))
    storage.write(paths.lease(IOS_PROD.id), encode(Lease(run_id, "sync", GONE)))
    storage.write(f"{paths.stage(IOS_PROD.id, run_id)}/0/x.parquet", b"staged")


def test_recover_of_a_healthy_lake_changes_nothing(filled: SampleLake) -> None:
    before = everything_below(filled.folder)
    result = datalake("recover")
    assert result.out.splitlines() == ["web_shop: nothing to do.", "ios_prod: nothing to do."]
    assert everything_below(filled.folder) == before


def test_recover_closes_a_dead_run_and_frees_its_lease(filled: SampleLake) -> None:
    leave_dead_run(filled.lake)
    result = datalake("recover", "--source", "ios_prod")
    assert result.out.splitlines() == [
        "ios_prod: run 17 crashed without a report; it now has a failed one.",
        "ios_prod: released the lease of sync (run 17, process 7 on another-machine).",
    ]
    assert filled.lake.storage.files("segment-stage") == []
    assert datalake("recover").out.count("nothing to do") == 2
    [failed, *_] = datalake("reports", "--source", "ios_prod", "--json").json
    assert (failed["run_id"], failed["status"]) == ("17", "failed")

    leave_dead_run(filled.lake, "18")
    [web, ios] = datalake("recover", "--json").json
    assert (web["source"], web["runs_closed"], web["lease_freed"]) == ("web_shop", [], None)
    assert (ios["runs_closed"], ios["lease_freed"]) == (["18"], "18")
    assert ios["replaced"] == {"files": 0, "bytes": 0}


def test_recover_leaves_a_running_sync_alone(filled: SampleLake) -> None:
    lease = encode(Lease("18", "sync", myself()))
    filled.lake.storage.write(paths.lease(IOS_PROD.id), lease)
    result = datalake("recover", "--source", IOS_PROD.id)
    assert result.out == "ios_prod: nothing to do.\n"
    assert "running: sync (run 18" in result.err
    assert filled.lake.storage.read(paths.lease(IOS_PROD.id)) == lease


OTHERS = {
    "ID": "books",
    "Status": "Enabled",
    "Filter": {"Prefix": "finance/"},
    "Expiration": {"Days": 90},
}


@pytest.fixture
def bucket(aws: AwsServer, tmp_path: Path) -> str:
    role = "arn:aws:iam::123456789012:role/which-may-not-change-buckets"
    retention = {"stage_days": 5}
    storage = "s3://lake-bucket/events"
    lake_in(tmp_path, storage=storage, region=REGION, iam_role_arn=role, retention=retention)
    name = aws.bucket("lake-bucket", REGION)
    aws.client("s3").put_bucket_lifecycle_configuration(
        Bucket=name, LifecycleConfiguration={"Rules": [OTHERS]}
    )
    return name


def rules(aws: AwsServer, bucket: str) -> dict[str, dict[str, object]]:
    found = aws.client("s3").get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    return {rule["ID"]: rule for rule in found}


def test_lifecycle_rules_are_shown_by_a_dry_run_and_added_once_beside_others(
    aws: AwsServer, bucket: str
) -> None:
    result = datalake("aws", "lifecycle", "--dry-run")
    assert result.out.splitlines()[0] == (
        "datalake-events/segment-stage: removes from events/segment-stage/ files after 5 days, "
        "old versions after 1 day, unfinished uploads after 7 days"
    )
    assert "Nothing was changed (--dry-run); 1 other rule would stay." in result.err
    assert rules(aws, bucket) == {"books": OTHERS}

    datalake("aws", "lifecycle")
    now = rules(aws, bucket)
    assert now.pop("books") == OTHERS
    assert list(now) == [
        "datalake-events/segment-stage",
        "datalake-events/segment-data",
        "datalake-events/sync_tracking_datasets",
        "datalake-events/logs",
    ]
    again = datalake("aws", "lifecycle")
    assert again.out == "lake-bucket has the lake's rules already, 1 other rule besides\n"


def test_a_folder_has_no_lifecycle(tmp_path: Path) -> None:
    lake_in(tmp_path)
    result = datalake("aws", "lifecycle", code=2)
    assert "`storage` is ./data: only buckets have a lifecycle" in result.err
