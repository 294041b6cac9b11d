"""Sessions: credentials, regions, roles and external ids; the lifecycle of a bucket."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from eventlake.aws import sessions
from eventlake.aws.access import ATTEMPTS, AwsAccess, forget_sessions
from eventlake.aws.lifecycle import LOG_DAYS, apply_lifecycle, merged, our_rules, read_lifecycle
from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import aws_call, role_call
from eventlake.aws.sessions import client_config
from eventlake.rules.errors import InsufficientPermissions, InvalidSetting, LakeError
from eventlake.settings.models import Settings
from tests.support.aws.enforced import US, User, answered, enforced, lake_error_of
from tests.support.lakes.settings import settings_of
from tests.support.servers.aws import REGION, SECRET, AwsServer

ROLE = "arn:aws:iam::123456789012:role/datalake"


def settings(**more: Any) -> Settings:
    source = {"id": "a", "slug": "a"}
    return settings_of("lake", source, workspace_id="P3IMS7SBDH", **more)


def test_the_external_id_is_the_workspace_unless_the_source_has_its_own() -> None:
    sources = [{"id": "a", "slug": "a"}, {"id": "b", "slug": "b", "external_id": "own"}]
    read = settings(iam_role_arn=ROLE, region="eu-west-1", sources=sources)
    assert AwsAccess.of(read) == AwsAccess("eu-west-1", ROLE, "P3IMS7SBDH")
    assert AwsAccess.of(read.source("a")) == AwsAccess("eu-west-1", ROLE, "P3IMS7SBDH")
    assert AwsAccess.of(read.source("b")) == AwsAccess("eu-west-1", ROLE, "own")


def test_without_a_role_the_usual_chain_holds(aws: AwsServer) -> None:
    assert AwsAccess().credentials().secret_key == SECRET
    assert AwsAccess().region_name() == REGION
    assert AwsAccess("us-west-2").client("glue").meta.region_name == "us-west-2"
    with ThreadPoolExecutor(8) as pool:  # one client serves all threads
        assert len(set(pool.map(lambda _: AwsAccess().client("glue"), range(32)))) == 1


def test_a_role_is_assumed_with_its_external_id(aws: AwsServer) -> None:
    aws.bucket()
    access = AwsAccess(role_arn=aws.role(), external_id="P3IMS7SBDH")
    caller = access.client("sts").get_caller_identity()["Arn"]
    assert caller.endswith(":assumed-role/datalake/datalake")
    assert access.client("s3").list_buckets()["Buckets"][0]["Name"] == "lake-bucket"
    assert access.credentials().token
    assert access.without_role().credentials().token is None


def test_a_role_is_renewed_in_time(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    access = AwsAccess(role_arn=aws.role(), external_id="P3IMS7SBDH")
    first = access.credentials()
    assert access.credentials() == first
    in_51_minutes = datetime.now(UTC) + timedelta(minutes=51)  # of the 60 it is good for
    monkeypatch.setattr("botocore.credentials._local_now", lambda: in_51_minutes)
    access.session().get_credentials()._time_fetcher = lambda: in_51_minutes
    later = access.credentials()
    assert later.access_key != first.access_key
    assert later.token != first.token


def test_keys_are_required_on_use(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    client = AwsAccess(role_arn=ROLE).client("s3")
    with pytest.raises(InvalidSetting, match="invalid AWS credentials: none were found"):
        client.list_buckets()


def test_an_access_travels_without_secrets(aws: AwsServer) -> None:
    access = AwsAccess(role_arn=aws.role(), external_id="P3IMS7SBDH")
    keys = access.credentials()
    travelled = pickle.dumps(access)
    assert pickle.loads(travelled) == access
    for secret in (keys.secret_key, keys.token, SECRET):
        assert secret.encode() not in travelled
        assert secret not in repr(access)


def test_trouble_of_the_service_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_MAX_ATTEMPTS", raising=False)
    assert client_config().retries == {"mode": "standard", "total_max_attempts": ATTEMPTS}
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    assert "total_max_attempts" not in client_config().retries


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-10-01T07:08:09.123Z", datetime(2026, 10, 1, 7, 8, 9, 123_000, UTC)),
        ("2026-10-01T07:08:09Z", datetime(2026, 10, 1, 7, 8, 9, 0, UTC)),
        ("Thu, 01 Oct 2026 07:08:09 GMT", datetime(2026, 10, 1, 7, 8, 9, 0, UTC)),
        ("2026-10-01T09:08:09+02:00", datetime(2026, 10, 1, 7, 8, 9, 0, UTC)),
        (1790838489, datetime(2026, 10, 1, 7, 8, 9, 0, UTC)),
    ],
)
def test_times_in_answers_are_read_in_all_forms(text: Any, moment: datetime) -> None:
    assert sessions._timestamp(text) == moment


def denied_role(reason: str = "") -> ClientError:
    said = f"User: {US} is not authorized to perform: sts:AssumeRole on resource: {ROLE}{reason}"
    return answered("AssumeRole", "AccessDenied", said)


def raised_by(access: AwsAccess, error: ClientError) -> LakeError:
    with pytest.raises(LakeError) as caught, role_call(access):
        raise error
    return caught.value


def test_an_external_id_that_the_role_does_not_accept() -> None:
    error = raised_by(AwsAccess(role_arn=ROLE, external_id="9IP56Shn6"), denied_role())
    assert type(error) is InvalidSetting
    assert str(error).startswith(
        "External ID is invalid. Please ensure the external ID in the IAM role used to connect to "
        "your Data Lake "
    )
    for part in ("'9IP56Shn6'", ROLE, US, "sts:AssumeRole", "`sts:ExternalId`", "`iam_role_arn`"):
        assert part in str(error)
    within = lake_error_of(denied_role(), "ios_prod.track_order")  # in another call
    assert str(within).startswith("External ID is")
    assert ROLE in str(within)


def test_an_external_id_that_is_not_set() -> None:
    ios = {"id": "9IP56Shn6", "slug": "ios_prod", "external_id": "9IP56Shn6"}
    web = {"id": "wX3mQ8rTz", "slug": "web_shop"}
    lake = settings(iam_role_arn=ROLE, sources=[ios, web])
    own, default = (str(raised_by(AwsAccess.of(s), denied_role())) for s in lake.sources)
    assert own.startswith("External ID is invalid")
    assert default.startswith(
        "External ID is not set. Please ensure that the IAM role used to connect to your Data Lake "
        "has the workspace ID in the list of external IDs"
    )
    assert "with external ID 'P3IMS7SBDH', that of the workspace, was refused" in default
    assert str(raised_by(AwsAccess.of(lake), denied_role())) == default
    none = str(raised_by(AwsAccess(role_arn=ROLE), denied_role()))
    assert none.startswith("External ID is not set")
    assert "without an external ID was refused" in none


@pytest.fixture
def acting(aws: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Act as a user to whom some actions are denied."""

    def act(*denied: str) -> None:
        for name, value in User(aws, denied=[*denied]).environment.items():
            monkeypatch.setenv(name, value)
        forget_sessions()

    return act


def test_a_role_is_refused_on_first_use(aws: AwsServer, acting: Callable[..., None]) -> None:
    role = aws.role(external_id="P3IMS7SBDH")
    acting()
    glue = AwsAccess(role_arn=role, external_id="9IP56Shn6").client("glue")
    refused = pytest.raises(InvalidSetting, match=rf"^External ID is invalid.*{role}.*'9IP56Shn6'")
    with enforced(aws), refused, aws_call("ios_prod"):
        glue.get_database(Name="ios_prod")


def test_assuming_roles_needs_a_permission() -> None:
    reason = " because no identity-based policy allows the sts:AssumeRole action"
    error = raised_by(AwsAccess(role_arn=ROLE, external_id="9IP56Shn6"), denied_role(reason))
    assert type(error) is InsufficientPermissions
    assert str(error).startswith(f"Eventlake does not have permissions to assume role {ROLE}")
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": ROLE}
    assert granted_by(str(error)) == statement


ARCHIVE: dict[str, Any] = {
    "ID": "archive the books",
    "Status": "Enabled",
    "Filter": {"Prefix": "finance/"},
    "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}],
}
NAMELESS: dict[str, Any] = {"Status": "Disabled", "Prefix": "", "Expiration": {"Days": 1}}
OLD = our_rules("", 3)


def test_staging_and_logs_expire_and_data_lose_only_old_versions_and_unfinished_uploads() -> None:
    stage, data, tracking, logs = our_rules("events/", 14)
    assert stage["ID"] == "datalake-events/segment-stage"
    assert stage["Filter"] == {"Prefix": "events/segment-stage/"}
    assert (stage["Expiration"], logs["Expiration"]) == ({"Days": 14}, {"Days": LOG_DAYS})
    for rule in (data, tracking):
        assert rule["Expiration"] == {"ExpiredObjectDeleteMarker": True}
        assert rule["NoncurrentVersionExpiration"]["NoncurrentDays"] > 1
    for rule in (stage, data, tracking):
        assert "AbortIncompleteMultipartUpload" in rule


@pytest.mark.parametrize(
    ("present", "ids"),
    [
        ([], ["stage", "data", "tracking", "logs"]),
        ([ARCHIVE], ["archive", "stage", "data", "tracking", "logs"]),
        ([OLD[0], ARCHIVE], ["stage", "archive", "data", "tracking", "logs"]),
        ([NAMELESS], ["nameless", "stage", "data", "tracking", "logs"]),
    ],
    ids=["none yet", "others' rule", "ours of before", "a rule without id"],
)
def test_our_rules_are_replaced_and_others_stay_in_place(
    present: list[Any], ids: list[str]
) -> None:
    ours = our_rules("", 14)
    known = dict(zip(["stage", "data", "tracking", "logs"], ours, strict=True))
    others = {"archive": ARCHIVE, "nameless": NAMELESS}
    assert merged(present, ours) == [(known | others)[name] for name in ids]


RULES = st.lists(
    st.sampled_from([ARCHIVE, {**ARCHIVE, "ID": "b"}, *OLD]), unique_by=lambda rule: rule["ID"]
)


@given(RULES)
def test_merging_again_changes_nothing_and_loses_no_rule(present: list[dict[str, Any]]) -> None:
    ours = our_rules("", 14)
    once = merged(present, ours)
    assert merged(once, ours) == once
    assert [r for r in once if r not in ours] == [r for r in present if r not in OLD]
    assert all(rule in once for rule in ours)


def test_an_existing_bucket_keeps_the_rules_it_had(aws: AwsServer) -> None:
    access, bucket = AwsAccess(REGION), aws.bucket()
    s3 = aws.client("s3")
    s3.put_bucket_lifecycle_configuration(
        Bucket=bucket, LifecycleConfiguration={"Rules": [ARCHIVE]}
    )
    planned = read_lifecycle(access, bucket, our_rules("", 14))
    assert planned.kept == [ARCHIVE]
    assert planned.changes == our_rules("", 14)
    assert s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"] == [ARCHIVE]

    apply_lifecycle(access, planned)
    rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert rules == [ARCHIVE, *our_rules("", 14)]
    assert read_lifecycle(access, bucket, our_rules("", 14)).changes == []


def test_a_bucket_without_a_lifecycle_gets_one(aws: AwsServer) -> None:
    access, bucket = AwsAccess(REGION), aws.bucket()
    apply_lifecycle(access, read_lifecycle(access, bucket, our_rules("events/", 14)))
    found = aws.client("s3").get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    assert found == our_rules("events/", 14)


def test_a_refused_change_names_its_grant(aws: AwsServer, acting: Callable[..., None]) -> None:
    bucket = aws.bucket()
    acting("s3:PutLifecycleConfiguration")
    access = AwsAccess("eu-west-1")
    planned = read_lifecycle(access, bucket, our_rules("", 14))
    with enforced(aws), pytest.raises(InsufficientPermissions, match="s3:PutLifecycle"):
        apply_lifecycle(access, planned)
