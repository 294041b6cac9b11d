"""Answers that are neither refusals nor wrong settings, and what else AWS tells in its own."""

import pytest
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import as_lake_error, aws_call
from eventlake.rules.errors import ServiceTrouble
from tests.support.aws.recorded import CLUSTER, LAKE, US, answered, told_of


@pytest.mark.parametrize(
    "error",
    [
        answered("PutObject", "SlowDown", "Please reduce your request rate."),
        answered("GetTables", "ThrottlingException", "Rate exceeded"),
        answered("DescribeStep", "InternalServerException", "try later"),
        answered("PutObject", "503", "Service Unavailable"),
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
        ConnectTimeoutError(endpoint_url="http://127.0.0.1:1"),
        ReadTimeoutError(endpoint_url="http://127.0.0.1:1"),
        OSError(
            "When getting information for key 'a' in bucket 'b': AWS Error NETWORK_CONNECTION "
            "during HeadObject operation: curlCode: 7, Could not connect to server"
        ),
        OSError(
            "When listing objects under key 'a/' in bucket 'b': AWS Error SLOW_DOWN during "
            "ListObjectsV2 operation: Please reduce your request rate."
        ),
        RuntimeError("Traceback\n  x\nbotocore.exceptions.ReadTimeoutError: Read timeout\n\n\tat"),
    ],
    ids=lambda error: f"{type(error).__name__}-{str(error)[-20:]}",
)
def test_what_retries_did_not_mend_is_nobodys_fault(error: Exception) -> None:
    told = as_lake_error(error)
    assert type(told) is ServiceTrouble
    assert told.error_code == "Segment.Internal"
    assert "There is nothing to correct; the next sync tries again" in str(told)


@pytest.mark.parametrize(
    "error",
    [
        answered("GetTable", "EntityNotFoundException", "Table x not found."),
        answered("CreateTable", "AlreadyExistsException", "Table already exists."),
        answered("UpdateTable", "ConcurrentModificationException", "changed meanwhile"),
        answered("PutObject", "PreconditionFailed", "At least one of the pre-conditions ..."),
        answered("GetObject", "NoSuchKey", "The specified key does not exist."),
        answered("HeadObject", "404", "Not Found"),
        FileNotFoundError("[Errno 2] Path does not exist 'lake-bucket/a'"),
        ValueError("something else"),
    ],
    ids=lambda error: type(error).__name__ + str(error)[18:40],
)
def test_answers_that_are_part_of_the_work_come_through(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, aws_call("ios_prod.x"):
        raise error
    assert caught.value is error


def test_the_resource_and_the_key_that_aws_names_are_the_ones_told() -> None:
    key = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    refused = answered(
        "PutObject",
        "AccessDenied",
        f"User: {US} is not authorized to perform: kms:GenerateDataKey on resource: {key} because "
        "no identity-based policy allows the kms:GenerateDataKey action",
    )
    told = str(told_of(refused, f"{LAKE}/segment-stage/S1/R1/a"))
    assert f"kms:GenerateDataKey on {key} was refused to {US}" in told
    assert granted_by(told) == {
        "Effect": "Allow",
        "Action": "kms:GenerateDataKey",
        "Resource": key,
    }


def test_an_explicit_deny_is_not_mended_by_a_grant_alone() -> None:
    said = (
        f"User: {US} is not authorized to perform: s3:PutObject on resource: "
        f'"arn:aws:s3:::{LAKE}/segment-data/x" with an explicit deny in a service control policy'
    )
    told = str(told_of(answered("PutObject", "AccessDenied", said), f"{LAKE}/x"))
    assert "An explicit deny in a service control policy is in the way" in told
    assert f"s3:PutObject on arn:aws:s3:::{LAKE}/segment-data/x was refused" in told


def test_a_cluster_without_the_tag_is_a_reason_for_a_refusal() -> None:
    arn = f"arn:aws:elasticmapreduce:eu-west-1:123456789012:cluster/{CLUSTER}"
    said = (
        f"User: {US} is not authorized to perform: elasticmapreduce:AddJobFlowSteps on resource: "
        f"{arn} because no identity-based policy allows the elasticmapreduce:AddJobFlowSteps action"
    )
    refused = answered("AddJobFlowSteps", "AccessDeniedException", said)
    told = str(told_of(refused, CLUSTER))
    assert f"elasticmapreduce:AddJobFlowSteps on {arn} was refused to {US}" in told
    assert "with tag vendor=segment" in told


def test_what_lake_formation_refuses_is_not_granted_by_a_policy() -> None:
    said = "Insufficient Lake Formation permission(s): Required Create Table on ios_prod"
    refused = answered("CreateTable", "AccessDeniedException", said)
    told = str(told_of(refused, "ios_prod.track_order"))
    assert f"AWS says: {said}. Lake Formation governs the catalog: grant it there" in told
    assert "glue:CreateTable on arn:aws:glue:*:*:table/ios_prod/track_order was refused." in told
