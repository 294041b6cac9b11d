"""Roles that do not let us in: the external id, the trust, or the right to ask."""

import pytest
from botocore.exceptions import ClientError

from lake.aws.access import AwsAccess, forget_sessions
from lake.aws.permissions import granted_by
from lake.aws.refusals import Doing, aws_call
from lake.errors import InsufficientPermissions, InvalidSetting
from tests.aws_server import AwsServer
from tests.lake.aws.enforced import User, enforced
from tests.lake.aws.recorded import US, answered, told_of

ROLE = "arn:aws:iam::123456789012:role/segment-data-lake-role"


def denied_role(reason: str = "") -> ClientError:
    said = f"User: {US} is not authorized to perform: sts:AssumeRole on resource: {ROLE}{reason}"
    return answered("AssumeRole", "AccessDenied", said)


def test_an_external_id_that_the_role_does_not_take() -> None:
    told = told_of(denied_role(), Doing.ASSUME_ROLE, ROLE, external_id="9IP56Shn6")
    assert type(told) is InvalidSetting
    said = str(told)
    assert said.startswith("External ID is invalid")
    for part in ("'9IP56Shn6'", ROLE, US, "sts:AssumeRole", "`sts:ExternalId`", "`iam_role_arn`"):
        assert part in said


def test_no_external_id_where_the_role_wants_one() -> None:
    told = told_of(denied_role(), Doing.ASSUME_ROLE, ROLE)
    assert type(told) is InvalidSetting
    assert str(told).startswith("External ID is not set")


def test_a_role_refused_in_the_midst_of_other_work() -> None:
    told = told_of(denied_role(), Doing.FETCH_SCHEMA, "ios_prod.track_order")
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
    with enforced(aws), refused, aws_call(Doing.FETCH_SCHEMA, "ios_prod"):
        glue.get_database(Name="ios_prod")


def test_who_may_not_assume_roles_at_all_needs_a_permission() -> None:
    reason = " because no identity-based policy allows the sts:AssumeRole action"
    told = told_of(denied_role(reason), Doing.ASSUME_ROLE, ROLE, external_id="9IP56Shn6")
    assert type(told) is InsufficientPermissions
    assert str(told).startswith(f"Datalake does not have permissions to assume role {ROLE}")
    assert granted_by(str(told)) == {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Resource": ROLE,
    }


def test_a_role_on_the_local_server_wants_its_external_id(aws: AwsServer) -> None:
    role = aws.role(external_id="P3IMS7SBDH")
    sts = User(aws, denied=[]).client("sts")
    asked = {"RoleArn": role, "RoleSessionName": "datalake"}
    with enforced(aws):
        with aws_call(Doing.ASSUME_ROLE, role, external_id="P3IMS7SBDH"):
            sts.assume_role(**asked, ExternalId="P3IMS7SBDH")
        refused = pytest.raises(InvalidSetting, match=r"^External ID is invalid.*'wrong'")
        with refused, aws_call(Doing.ASSUME_ROLE, role, external_id="wrong"):
            sts.assume_role(**asked, ExternalId="wrong")
