"""Roles that do not let us in: the external id, the trust, or the right to ask."""

import pytest
from botocore.exceptions import ClientError

from eventlake.aws.access import AwsAccess, forget_sessions
from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import aws_call, role_call
from eventlake.rules.errors import InsufficientPermissions, InvalidSetting, LakeError
from eventlake.settings.models import Settings
from tests.support.aws.enforced import User, enforced
from tests.support.aws.recorded import US, answered, told_of
from tests.support.servers.aws import AwsServer

ROLE = "arn:aws:iam::123456789012:role/segment-data-lake-role"


def denied_role(reason: str = "") -> ClientError:
    said = f"User: {US} is not authorized to perform: sts:AssumeRole on resource: {ROLE}{reason}"
    return answered("AssumeRole", "AccessDenied", said)


def told_by(access: AwsAccess, error: ClientError) -> LakeError:
    with pytest.raises(LakeError) as caught, role_call(access):
        raise error
    return caught.value


def test_an_external_id_that_the_role_does_not_take() -> None:
    told = told_by(AwsAccess(role_arn=ROLE, external_id="9IP56Shn6"), denied_role())
    assert type(told) is InvalidSetting
    said = str(told)
    assert said.startswith("External ID is invalid")
    for part in ("'9IP56Shn6'", ROLE, US, "sts:AssumeRole", "`sts:ExternalId`", "`iam_role_arn`"):
        assert part in said


def test_an_external_id_that_nobody_has_set() -> None:
    settings = Settings.model_validate(
        {
            "workspace_id": "P3IMS7SBDH",
            "storage": "s3://lake-bucket",
            "iam_role_arn": ROLE,
            "sources": [
                {"id": "9IP56Shn6", "slug": "ios_prod", "external_id": "9IP56Shn6"},
                {"id": "wX3mQ8rTz", "slug": "web_shop"},
            ],
        }
    )
    own, default = (str(told_by(AwsAccess.of(s), denied_role())) for s in settings.sources)
    assert own.startswith("External ID is invalid")
    assert default.startswith("External ID is not set")
    assert "with external ID 'P3IMS7SBDH', that of the workspace, was refused" in default
    assert str(told_by(AwsAccess.of(settings), denied_role())) == default
    none = str(told_by(AwsAccess(role_arn=ROLE), denied_role()))
    assert none.startswith("External ID is not set")
    assert "without an external ID was refused" in none


def test_a_role_refused_in_the_midst_of_other_work() -> None:
    told = told_of(denied_role(), "ios_prod.track_order")
    assert str(told).startswith("External ID is")
    assert ROLE in str(told)


def test_the_role_of_an_access_is_refused_in_whatever_call_needs_it_first(
    aws: AwsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = aws.role(external_id="P3IMS7SBDH")
    for name, value in User(aws, denied=[]).environment.items():
        monkeypatch.setenv(name, value)
    forget_sessions()
    glue = AwsAccess(role_arn=role, external_id="9IP56Shn6").client("glue")
    refused = pytest.raises(InvalidSetting, match=rf"^External ID is invalid.*{role}.*'9IP56Shn6'")
    with enforced(aws), refused, aws_call("ios_prod"):
        glue.get_database(Name="ios_prod")


def test_who_may_not_assume_roles_at_all_needs_a_permission() -> None:
    reason = " because no identity-based policy allows the sts:AssumeRole action"
    told = told_by(AwsAccess(role_arn=ROLE, external_id="9IP56Shn6"), denied_role(reason))
    assert type(told) is InsufficientPermissions
    assert str(told).startswith(f"Datalake does not have permissions to assume role {ROLE}")
    assert granted_by(str(told)) == {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Resource": ROLE,
    }
