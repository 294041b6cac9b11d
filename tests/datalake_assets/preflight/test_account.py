"""What `check` finds of who we are on AWS."""

from collections.abc import Callable

import pytest

from datalake_assets.preflight import findings
from datalake_assets.preflight.aws import account_findings
from eventlake.aws.access import forget_sessions
from eventlake.lake import Lake
from tests.datalake_assets.preflight.conftest import LAKE, MakeLake, put_raw_file, signs
from tests.support.aws.enforced import User, enforced
from tests.support.servers.aws import AwsServer

TWO = [
    {"id": "9IP56Shn6", "slug": "ios_prod", "external_id": "9IP56Shn6"},
    {"id": "wX3mQ8rTz", "slug": "web_shop"},
]


def accounts(lake: Lake) -> dict[str, str]:
    """What is told of each source's role, after its sign."""
    found = account_findings(lake, lake.settings.sources)
    return {finding.what: f"{finding.sign} {finding.told}" for _, finding in found}


def test_without_a_role_it_is_whoever_the_environment_says(make_lake: MakeLake) -> None:
    found = accounts(make_lake())
    assert found == {"AWS account of ios_prod": "✓ arn:aws:sts::123456789012:user/moto"}


def test_a_role_is_assumed_once_per_source_with_its_external_id(
    aws: AwsServer, make_lake: MakeLake, become: Callable[..., User]
) -> None:
    role = aws.role(external_id="P3IMS7SBDH")
    become()
    with enforced(aws):
        found = accounts(make_lake(iam_role_arn=role, sources=TWO))
    assert found["role of web_shop"] == (
        "✓ arn:aws:sts::123456789012:assumed-role/datalake/datalake with external id P3IMS7SBDH"
    )
    assert found["role of ios_prod"].startswith("✗ External ID is invalid")
    assert "'9IP56Shn6'" in found["role of ios_prod"]


def test_of_a_source_without_its_role_nothing_else_is_tried(
    aws: AwsServer, make_lake: MakeLake, become: Callable[..., User]
) -> None:
    role = aws.role(external_id="none of ours")
    aws.bucket(LAKE)
    become()
    lake = make_lake(iam_role_arn=role, sources=TWO)
    with enforced(aws):
        found = signs(findings(lake, lake.settings.sources))
    assert found == {"role of ios_prod": "✗", "role of web_shop": "✗"}


def test_no_credentials(make_lake: MakeLake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    forget_sessions()
    [said] = accounts(make_lake()).values()
    assert said.startswith("✗ Data lake has invalid AWS credentials: none were found")


def test_the_catalog_of_another_account(make_lake: MakeLake) -> None:
    [said] = accounts(make_lake(catalog="glue", glue_catalog_id="999999999999")).values()
    assert said.startswith("✗ Data lake has invalid configuration for `glue_catalog_id`")
    assert "Set `glue_catalog_id: '123456789012'`" in said


def test_all_of_it_on_s3_with_the_local_engine(aws: AwsServer, make_lake: MakeLake) -> None:
    aws.bucket(LAKE)
    put_raw_file(aws)
    lake = make_lake()
    assert set(signs(findings(lake, lake.settings.sources))) == {
        "AWS account of ios_prod",
        "storage",
        "segment-stage",
        "segment-data",
        "sync_tracking_datasets",
        "lifecycle",
        "archive of ios_prod",
        "tables of ios_prod",
        "catalog",
        "Java",
    }


def test_where_the_bucket_is_missing_nothing_in_it_is_looked_at(make_lake: MakeLake) -> None:
    lake = make_lake()
    found = signs(findings(lake, lake.settings.sources))
    assert found["storage"] == "✗"
    assert "archive of ios_prod" not in found
