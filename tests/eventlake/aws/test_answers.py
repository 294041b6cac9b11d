"""What AWS returns, and the settings at fault when it returns an error."""

import pytest
from botocore.exceptions import (
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
    ReadTimeoutError,
)

from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import as_lake_error, aws_call
from eventlake.rules.errors import InvalidSetting, ServiceTrouble
from tests.support.aws.enforced import CLUSTER, LAKE, US, answered, told_of
from tests.support.servers.aws import AwsServer


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
    assert granted_by(told) == {"Effect": "Allow", "Action": "kms:GenerateDataKey", "Resource": key}


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


INVALID = "Data lake has invalid configuration for "
KEYS = "Data lake has invalid AWS credentials: "
ON_S3, ON_EMR, ON_GLUE = LAKE, CLUSTER, "ios_prod"


@pytest.mark.parametrize(
    ("error", "resource", "begins", "remedy"),
    [
        (
            answered("ListObjectsV2", "NoSuchBucket", "The specified bucket does not exist"),
            ON_S3,
            f"{INVALID}`storage`: S3 bucket {LAKE} does not exist",
            "Correct the name in `storage`",
        ),
        (
            answered("HeadBucket", "404", "Not Found"),
            ON_S3,
            f"{INVALID}`storage`: S3 bucket {LAKE} does not exist",
            "create the bucket",
        ),
        (
            answered(
                "ListObjectsV2",
                "PermanentRedirect",
                "The bucket you are attempting to access must be addressed using the specified "
                "endpoint. Please send all future requests to this endpoint.",
                Endpoint="lake-bucket.s3.eu-central-1.amazonaws.com",
            ),
            ON_S3,
            f"{INVALID}`region`: S3 bucket {LAKE} is not in the region",
            "Set `region: eu-central-1`",
        ),
        (
            answered(
                "GetObject",
                "AuthorizationHeaderMalformed",
                "The authorization header is malformed; the region 'us-east-1' is wrong; "
                "expecting 'eu-central-1'",
                Region="eu-central-1",
            ),
            ON_S3,
            f"{INVALID}`region`: S3 bucket {LAKE} is not in the region",
            "Set `region: eu-central-1`",
        ),
        (
            OSError(
                "When getting information for bucket 'lake-bucket': AWS Error UNKNOWN (HTTP "
                "status 301) during HeadBucket operation: No response body. Looks like the "
                "configured region is 'us-east-1' while the bucket is located in 'eu-west-1'."
            ),
            ON_S3,
            f"{INVALID}`region`: S3 bucket {LAKE} is not in the region",
            "Set `region: eu-west-1`",
        ),
        (NoRegionError(), ON_GLUE, f"{INVALID}`region`: none is set", "Set `region`"),
        (
            answered("HeadObject", "400", "Bad Request"),
            ON_S3,
            f"{INVALID}`region` or AWS credentials: S3 bucket {LAKE}",
            "Set `region` to the region of the bucket, and log in again",
        ),
        (
            answered(
                "DescribeCluster",
                "InvalidRequestException",
                f"Cluster id '{CLUSTER}' is not valid.",
            ),
            ON_EMR,
            f"{INVALID}`emr_cluster_id`: there is no EMR cluster {CLUSTER}",
            "Set the id of a cluster that runs",
        ),
        (
            answered(
                "AddJobFlowSteps", "ValidationException", "Specified job flow ID does not exist."
            ),
            ON_EMR,
            f"{INVALID}`emr_cluster_id`: there is no EMR cluster {CLUSTER}",
            "Set the id of a cluster that runs",
        ),
        (
            answered(
                "AddJobFlowSteps",
                "ValidationException",
                "A job flow that is shutting down, terminated, or finished may not be modified.",
            ),
            ON_EMR,
            f"{INVALID}`emr_cluster_id`: EMR cluster {CLUSTER} has been terminated",
            "Create another, and set its id",
        ),
        (
            answered(
                "GetDatabase",
                "AccessDeniedException",
                f"User: {US} is not authorized to perform: glue:GetDatabase on resource: "
                "arn:aws:glue:eu-west-1:999999999999:catalog because no resource-based policy "
                "allows the glue:GetDatabase action",
            ),
            ON_GLUE,
            f"{INVALID}`glue_catalog_id`: 999999999999 is not the account that we are in",
            "Set `glue_catalog_id: '123456789012'`",
        ),
        (
            answered("GetTable", "EntityNotFoundException", "Catalog 999999999999 not found."),
            ON_GLUE,
            f"{INVALID}`glue_catalog_id`: Glue has no such catalog",
            "leave it out",
        ),
        (NoCredentialsError(), ON_S3, f"{KEYS}none were found", "Set AWS_PROFILE"),
        (ProfileNotFound(profile="x"), ON_S3, f"{KEYS}none were found", "Set AWS_PROFILE"),
        (
            answered("PutObject", "ExpiredToken", "The provided token has expired."),
            ON_S3,
            f"{KEYS}they have expired",
            "Log in again",
        ),
        (
            answered(
                "GetTable",
                "ExpiredTokenException",
                "The security token included in the request is expired",
            ),
            ON_GLUE,
            f"{KEYS}they have expired",
            "Log in again",
        ),
        (
            OSError(
                "When listing objects under key 'a/' in bucket 'lake-bucket': AWS Error UNKNOWN "
                "(HTTP status 400) during ListObjectsV2 operation: Unable to parse ExceptionName: "
                "ExpiredToken Message: The provided token has expired."
            ),
            ON_S3,
            f"{KEYS}they have expired",
            "Log in again",
        ),
        (
            answered(
                "GetCallerIdentity",
                "InvalidClientTokenId",
                "The security token included in the request is invalid.",
            ),
            ON_S3,
            f"{KEYS}AWS does not accept the keys",
            "Correct AWS_ACCESS_KEY_ID",
        ),
        (
            answered(
                "AddJobFlowSteps",
                "UnrecognizedClientException",
                "The security token included in the request is invalid.",
            ),
            ON_EMR,
            f"{KEYS}AWS does not accept the keys",
            "Correct AWS_ACCESS_KEY_ID",
        ),
        (
            answered(
                "PutObject",
                "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
            ),
            ON_S3,
            f"{KEYS}the clock of this machine is wrong",
            "Set it by NTP",
        ),
        (
            answered(
                "GetTable",
                "InvalidSignatureException",
                "Signature expired: 20261116T080000Z is now earlier than 20261116T095500Z",
            ),
            ON_GLUE,
            f"{KEYS}the clock of this machine is wrong",
            "Set it by NTP",
        ),
    ],
    ids=lambda value: getattr(value, "operation_name", type(value).__name__),
)
def test_a_wrong_setting_is_named_with_its_remedy(
    error: Exception, resource: str, begins: str, remedy: str
) -> None:
    told = told_of(error, resource)
    assert type(told) is InvalidSetting
    assert told.error_code == "Segment.InvalidSettings"
    assert str(told).startswith(begins)
    assert remedy in str(told)
    assert type(as_lake_error(error)) is InvalidSetting


def test_what_the_local_server_says_itself(aws: AwsServer) -> None:
    s3, emr = aws.client("s3"), aws.client("emr")
    no_bucket = pytest.raises(InvalidSetting, match="S3 bucket nowhere does not exist")
    with no_bucket, aws_call("nowhere"):
        s3.list_objects_v2(Bucket="nowhere")
    no_cluster = pytest.raises(InvalidSetting, match=f"there is no EMR cluster {CLUSTER}")
    with no_cluster, aws_call(CLUSTER):
        emr.describe_cluster(ClusterId=CLUSTER)
