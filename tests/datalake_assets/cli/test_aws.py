"""`datalake aws lifecycle` on a bucket that was there before the lake."""

from pathlib import Path

import pytest

from tests.support.servers.aws import REGION, AwsServer
from tests.support.terminal import Terminal

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
