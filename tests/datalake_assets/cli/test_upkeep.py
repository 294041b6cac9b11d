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
from tests.support.servers.aws import REGION, AwsServer
from tests.support.terminal import Terminal, everything_below


def compact_all(filled: SampleLake) -> None:
    """Settings by which every partition of two files is compacted."""
    file = filled.folder / "lake.yaml"
    file.write_text(file.read_text() + "compaction: {min_files: 2}\n")


def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    terminal: Terminal, filled: SampleLake
) -> None:
    compact_all(filled)
    before = everything_below(filled.folder)
    said = terminal.run("upkeep", "--dry-run", "--source", "web_shop")
    assert said.code == 0
    assert said.out.splitlines()[0] == "web_shop: what an upkeep would do"
    assert "would be compacted" in said.out
    assert everything_below(filled.folder) == before


@pytest.mark.usefixtures("in_process")
def test_it_is_done_and_told_and_kept(terminal: Terminal, filled: SampleLake) -> None:
    compact_all(filled)
    rows = terminal.run("sql", "select count(*) n from web_shop.page", "--json").json
    said = terminal.run("upkeep", "--source", "web_shop")
    assert said.code == 0, said.err
    head, *table = said.out.splitlines()
    assert head == "web_shop"
    kinds = [line.split("  ")[0].strip() for line in table]
    assert {"data", "record log", "id index", "manifests", "staging"} <= set(kinds)
    assert "compacted" in said.out
    assert terminal.run("sql", "select count(*) n from web_shop.page", "--json").json == rows
    again = terminal.run("upkeep", "--source", "web_shop", "--json")
    [report] = again.json
    assert (report["source"], report["compacted"]["partitions"]) == ("web_shop", 0)
    assert report["before"]["data"]["files"] == report["after"]["data"]["files"] > 0


def test_a_source_that_is_not_there_is_told(terminal: Terminal, filled: SampleLake) -> None:
    said = terminal.run("upkeep", "--source", "shop", "--dry-run")
    assert said.code == 2 and "'shop' is not in the settings" in said.err


GONE = Holder("another-machine", 7, datetime.now(UTC) - timedelta(minutes=5))


def leave_dead_run(lake: Lake) -> None:
    """A sync of `ios_prod` that died while it held the lease."""
    facts = RunFacts("W1", IOS_PROD.id, "ios_prod", "17", datetime.now(UTC), "")
    storage = lake.storage
    storage.write(paths.open_run(IOS_PROD.id, "17"), encode(OpenRun(facts, 0, GONE)))
    storage.write(paths.lease(IOS_PROD.id), encode(Lease("17", "sync", GONE)))
    storage.write(f"{paths.stage(IOS_PROD.id, '17')}/0/x.parquet", b"staged")


def test_where_all_is_well_it_says_so_and_does_nothing(
    terminal: Terminal, filled: SampleLake
) -> None:
    before = everything_below(filled.folder)
    said = terminal.run("recover")
    assert said.code == 0
    assert said.out.splitlines() == ["web_shop: nothing to do.", "ios_prod: nothing to do."]
    assert everything_below(filled.folder) == before


def test_it_tells_what_it_did(terminal: Terminal, filled: SampleLake) -> None:
    leave_dead_run(filled.lake)
    said = terminal.run("recover", "--source", "ios_prod")
    assert said.code == 0
    assert said.out.splitlines() == [
        "ios_prod: run 17 had died without a report; it now has a failed one.",
        "ios_prod: freed the lease that sync (run 17, process 7 on another-machine) left behind.",
    ]
    assert filled.lake.storage.files("segment-stage") == []
    assert terminal.run("recover").out.count("nothing to do") == 2
    [failed, *_] = terminal.run("reports", "--source", "ios_prod", "--json").json
    assert (failed["run_id"], failed["status"]) == ("17", "failed")


def test_as_json(terminal: Terminal, filled: SampleLake) -> None:
    leave_dead_run(filled.lake)
    [web, ios] = terminal.run("recover", "--json").json
    assert (web["source"], web["runs_closed"], web["lease_freed"]) == ("web_shop", [], None)
    assert (ios["runs_closed"], ios["lease_freed"]) == (["17"], "17")
    assert ios["replaced"] == {"files": 0, "bytes": 0}


def test_who_is_at_work_is_named_and_left_alone(terminal: Terminal, filled: SampleLake) -> None:
    lease = encode(Lease("18", "sync", myself()))
    filled.lake.storage.write(paths.lease(IOS_PROD.id), lease)
    said = terminal.run("recover", "--source", IOS_PROD.id)
    assert said.out == "ios_prod: nothing to do.\n"
    assert "at work: sync (run 18" in said.err
    assert filled.lake.storage.read(paths.lease(IOS_PROD.id)) == lease


def test_an_unknown_source_is_wrong_use(terminal: Terminal, filled: SampleLake) -> None:
    assert terminal.run("recover", "--source", "android").code == 2


SETTINGS = """\
workspace_id: P3IMS7SBDH
storage: {storage}
region: eu-west-1
iam_role_arn: arn:aws:iam::123456789012:role/which-may-not-change-buckets
retention:
  stage_days: 5
sources:
  - id: 9IP56Shn6
    slug: ios_prod
"""
OTHERS = {
    "ID": "books",
    "Status": "Enabled",
    "Filter": {"Prefix": "finance/"},
    "Expiration": {"Days": 90},
}


@pytest.fixture
def bucket(aws: AwsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("lake.yaml").write_text(SETTINGS.format(storage="s3://lake-bucket/events"))
    name = aws.bucket("lake-bucket", REGION)
    aws.client("s3").put_bucket_lifecycle_configuration(
        Bucket=name, LifecycleConfiguration={"Rules": [OTHERS]}
    )
    return name


def rules(aws: AwsServer, bucket: str) -> dict[str, dict[str, object]]:
    found = aws.client("s3").get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    return {rule["ID"]: rule for rule in found}


def test_a_dry_run_shows_the_rules_and_changes_nothing(
    terminal: Terminal, aws: AwsServer, bucket: str
) -> None:
    said = terminal.run("aws", "lifecycle", "--dry-run")
    assert said.code == 0
    assert said.out.splitlines()[0] == (
        "datalake-events/segment-stage: events/segment-stage/ removed after 5 days, "
        "unfinished uploads after 7"
    )
    assert "Nothing was changed (--dry-run); 1 other rule would stay." in said.err
    assert rules(aws, bucket) == {"books": OTHERS}


def test_the_rules_are_added_once_beside_those_of_others(
    terminal: Terminal, aws: AwsServer, bucket: str
) -> None:
    assert terminal.run("aws", "lifecycle").code == 0
    now = rules(aws, bucket)
    assert now.pop("books") == OTHERS
    assert list(now) == [
        "datalake-events/segment-stage",
        "datalake-events/segment-data",
        "datalake-events/sync_tracking_datasets",
    ]
    again = terminal.run("aws", "lifecycle")
    assert again.out == "lake-bucket has the lake's rules already, 1 other rule besides\n"


@pytest.mark.usefixtures("bucket")
def test_a_folder_has_no_lifecycle(terminal: Terminal) -> None:
    Path("lake.yaml").write_text(SETTINGS.format(storage="./data"))
    said = terminal.run("aws", "lifecycle")
    assert said.code == 2
    assert "`storage` is ./data: only buckets have a lifecycle" in said.err


def test_the_command_shows_examples(terminal: Terminal) -> None:
    said = terminal.run("aws", "lifecycle", "--help")
    assert "datalake aws lifecycle" in said.out.split("Examples:")[1]
