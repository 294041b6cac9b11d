"""What `check` finds of the application on EMR Serverless."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from datalake_assets.preflight import findings
from datalake_assets.preflight.serverless import application_findings
from tests.support.aws.enforced import Become, enforced
from tests.support.aws.preflight import LAKE, MakeLake, put_raw_file, shown
from tests.support.servers.aws import ACCOUNT, AwsServer
from tests.support.servers.emr_serverless import LocalServerless, local_serverless, without_spark

ROLE = f"arn:aws:iam::{ACCOUNT}:role/datalake-jobs"
FindingsOf = Callable[[str], dict[str, str]]


@pytest.fixture
def serverless(aws: AwsServer, tmp_path: Path) -> Iterator[LocalServerless]:
    with local_serverless(aws, tmp_path / "serverless", without_spark) as serverless:
        yield serverless


@pytest.fixture
def findings_of(make_lake: MakeLake) -> FindingsOf:
    """The findings about an application."""

    def findings_of(application_id: str) -> dict[str, str]:
        lake = make_lake(
            engine="emr-serverless",
            emr_serverless_application_id=application_id,
            execution_role_arn=ROLE,
        )
        return shown(application_findings(lake.settings.sources))

    return findings_of


def test_a_healthy_application(serverless: LocalServerless, findings_of: FindingsOf) -> None:
    ours = serverless.create_application()
    assert findings_of(ours) == {
        f"application {ours}": "✓ STARTED, emr-spark-8.1.0, tagged vendor=segment",
        f"job runs of {ours}": f"✓ may be started, with {ROLE}",
    }
    assert serverless.runs(ours) == []


def test_it_is_part_of_the_whole_check(
    aws: AwsServer, serverless: LocalServerless, make_lake: MakeLake
) -> None:
    lake = make_lake(
        engine="emr-serverless",
        emr_serverless_application_id=serverless.create_application(),
        execution_role_arn=ROLE,
    )
    aws.bucket(LAKE)
    put_raw_file(aws)
    found = list(findings(lake, lake.settings.sources))
    assert [finding.what for finding in found if finding.error] == []
    assert {"Pipes messages", *(f.what for f in found if "application" in f.what)} <= {
        finding.what for finding in found
    }
    assert not any(finding.what == "Java" for finding in found)


@pytest.mark.parametrize(
    ("changed", "sign", "words"),
    [
        ({"tags": {}}, "✗", "lacks the tag vendor=segment"),
        ({"releaseLabel": "emr-7.9.0"}, "✗", "Create one with release emr-spark-8."),
        ({"type": "HIVE"}, "✗", "Create one of type SPARK"),
        ({"autoStartConfiguration": {"enabled": False}}, "!", "switch auto-start on"),
    ],
    ids=["tag", "release", "type", "auto-start"],
)
def test_an_application_with_a_wrong_setting(
    serverless: LocalServerless,
    findings_of: FindingsOf,
    changed: dict[str, object],
    sign: str,
    words: str,
) -> None:
    ours = serverless.create_application(**changed)
    said = findings_of(ours)[f"application {ours}"]
    assert said.startswith(sign) and words in said


def test_an_application_that_does_not_exist(
    serverless: LocalServerless, findings_of: FindingsOf
) -> None:
    said = findings_of("00nosuch")["application 00nosuch"]
    wrong = "Eventlake has invalid configuration for `emr_serverless_application_id`: there is no"
    assert said.startswith(f"✗ {wrong}")


@pytest.mark.parametrize(
    ("denied", "what", "words"),
    [
        ("emr-serverless:GetApplication", "application", "read EMR Serverless application"),
        ("emr-serverless:StartJobRun", "job runs of", "submit an EMR job to application"),
    ],
)
def test_a_missing_permission(
    aws: AwsServer,
    serverless: LocalServerless,
    findings_of: FindingsOf,
    become: Become,
    denied: str,
    what: str,
    words: str,
) -> None:
    ours = serverless.create_application()
    become(denied)
    with enforced(aws):
        said = findings_of(ours)[f"{what} {ours}"]
    assert said.startswith(f"✗ Eventlake does not have permissions to {words} {ours}: {denied} on")
