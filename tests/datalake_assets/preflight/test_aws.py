"""What `check` finds of our AWS account, roles and catalog."""

from typing import Any

import pytest

from datalake_assets.preflight import findings
from datalake_assets.preflight.aws import account_findings, catalog_finding, glue_findings
from eventlake.aws.access import forget_sessions
from eventlake.aws.permissions import granted_by
from eventlake.lake import Lake
from tests.support.aws.enforced import Become, enforced
from tests.support.aws.preflight import LAKE, MakeLake, put_raw_file, shown, signs
from tests.support.servers.aws import AwsServer

TWO = [
    {"id": "9IP56Shn6", "slug": "ios_prod", "external_id": "9IP56Shn6"},
    {"id": "wX3mQ8rTz", "slug": "web_shop"},
]


def accounts(lake: Lake) -> dict[str, str]:
    return shown(finding for _, finding in account_findings(lake, lake.settings.sources))


def test_without_a_role_the_environment_has_the_credentials(make_lake: MakeLake) -> None:
    found = accounts(make_lake())
    assert found == {"AWS account of ios_prod": "✓ arn:aws:sts::123456789012:user/moto"}


def test_a_role_is_assumed_once_per_source_with_its_external_id(
    aws: AwsServer, make_lake: MakeLake, become: Become
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


def test_nothing_else_is_tried_for_a_source_without_its_role(
    aws: AwsServer, make_lake: MakeLake, become: Become
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
    assert said.startswith("✗ Eventlake has invalid AWS credentials: none were found")


def test_the_catalog_of_another_account(make_lake: MakeLake) -> None:
    [said] = accounts(make_lake(catalog="glue", glue_catalog_id="999999999999")).values()
    assert said.startswith("✗ Eventlake has invalid configuration for `glue_catalog_id`")
    assert "Set `glue_catalog_id: '123456789012'`" in said


def test_the_findings_of_a_lake_on_s3_with_the_local_engine(
    aws: AwsServer, make_lake: MakeLake
) -> None:
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
        "lines of ios_prod",
        "tables of ios_prod",
        "catalog",
        "Java",
    }


def test_a_missing_bucket_is_not_searched(make_lake: MakeLake) -> None:
    lake = make_lake()
    found = signs(findings(lake, lake.settings.sources))
    assert found["storage"] == "✗"
    assert "archive of ios_prod" not in found


REPORTS = "database __segment_datalake"


def everything(aws: AwsServer) -> dict[str, list[dict[str, Any]]]:
    """All that Glue holds."""
    glue = aws.client("glue")
    databases = [one["Name"] for one in glue.get_databases()["DatabaseList"]]
    return {name: glue.get_tables(DatabaseName=name)["TableList"] for name in databases}


@pytest.fixture
def lake(aws: AwsServer, make_lake: MakeLake) -> Lake:
    aws.bucket(LAKE)
    return make_lake(catalog="glue")


def findings_of(lake: Lake) -> dict[str, str]:
    return shown([catalog_finding(lake), *glue_findings(lake, lake.settings.sources)])


def test_the_check_creates_only_its_own_tables(aws: AwsServer, lake: Lake) -> None:
    assert findings_of(lake) == {
        "catalog": "✓ glue, 0 databases, 0 tables",
        REPORTS: "✓ tables may be made and changed; there are 2",
        "database ios_prod": "✓ not there yet; the first sync makes it",
    }
    before = everything(aws)
    assert {name: sorted(t["Name"] for t in tables) for name, tables in before.items()} == {
        "__segment_datalake": ["sync_records", "sync_reports"]
    }
    aws.client("glue").create_database(DatabaseInput={"Name": "ios_prod"})
    assert findings_of(lake)["database ios_prod"] == "✓ tables may be made and changed; there are 0"
    assert everything(aws) == before | {"ios_prod": []}


@pytest.mark.parametrize(
    ("denied", "what", "words"),
    [
        ("glue:GetDatabases", "catalog", "fetch schema information from Glue catalog"),
        ("glue:CreateDatabase", REPORTS, "create tables in Glue catalog"),
        ("glue:CreateTable", REPORTS, "create tables in Glue catalog"),
        ("glue:GetTable", "database ios_prod", "fetch schema information from Glue catalog"),
        ("glue:GetPartitions", "database ios_prod", "fetch schema information from Glue catalog"),
        ("glue:UpdateTable", "database ios_prod", "change tables of Glue catalog"),
        ("glue:BatchCreatePartition", "database ios_prod", "create tables in Glue catalog"),
        ("glue:BatchUpdatePartition", "database ios_prod", "change tables of Glue catalog"),
        ("glue:BatchDeletePartition", "database ios_prod", "delete table from Glue Catalog"),
    ],
)
def test_a_missing_permission_is_reported_with_the_statement_to_grant(
    aws: AwsServer, lake: Lake, become: Become, denied: str, what: str, words: str
) -> None:
    become(denied)
    with enforced(aws):
        said = findings_of(lake)[what]
    assert said.startswith(f"✗ Eventlake does not have permissions to {words}: {denied} on arn:")
    granted = granted_by(said)
    assert granted is not None
    assert granted["Action"] == denied


def test_a_missing_database_needs_the_permission_to_create_it(
    aws: AwsServer, lake: Lake, become: Become
) -> None:
    findings_of(lake)  # makes the one of the reports
    become("glue:CreateDatabase")
    with enforced(aws):
        found = findings_of(lake)
    assert found[REPORTS].startswith("✓")
    assert found["database ios_prod"].startswith("✗ Eventlake does not have permissions to create")
