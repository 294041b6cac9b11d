"""What AWS returns, and the settings at fault when it returns an error."""

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    NoRegionError,
    ProfileNotFound,
    ReadTimeoutError,
)

from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import aws_call
from eventlake.clouds import as_lake_error
from eventlake.rules.errors import InvalidSetting, ServiceTrouble
from tests.support.aws.enforced import CLUSTER, LAKE, US, answered, lake_error_of
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
def test_trouble_that_outlasts_the_retries_is_not_a_wrong_setting(error: Exception) -> None:
    trouble = as_lake_error(error)
    assert type(trouble) is ServiceTrouble
    assert trouble.error_code == "Segment.Internal"
    assert "There is nothing to correct; the next sync tries again" in str(trouble)


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


def unauthorized(operation: str, code: str, action: str, arn: str, reason: str = "") -> ClientError:
    reason = reason or f"because no identity-based policy allows the {action} action"
    about = f"is not authorized to perform: {action} on resource: {arn}"
    return answered(operation, code, f"User: {US} {about} {reason}")


def test_a_refusal_names_the_resource_and_the_key_that_aws_names() -> None:
    key = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"
    refused = unauthorized("PutObject", "AccessDenied", "kms:GenerateDataKey", key)
    message = str(lake_error_of(refused, f"{LAKE}/segment-stage/S1/R1/a"))
    assert f"kms:GenerateDataKey on {key} was refused to {US}" in message
    statement = {"Effect": "Allow", "Action": "kms:GenerateDataKey", "Resource": key}
    assert granted_by(message) == statement


def test_an_explicit_deny_is_reported() -> None:
    arn = f"arn:aws:s3:::{LAKE}/segment-data/x"
    deny = "with an explicit deny in a service control policy"
    refused = unauthorized("PutObject", "AccessDenied", "s3:PutObject", f'"{arn}"', deny)
    message = str(lake_error_of(refused, f"{LAKE}/x"))
    assert "An explicit deny in a service control policy is in the way" in message
    assert f"s3:PutObject on {arn} was refused" in message


def test_a_refusal_of_a_step_names_the_tag_that_its_cluster_needs() -> None:
    arn = f"arn:aws:elasticmapreduce:eu-west-1:123456789012:cluster/{CLUSTER}"
    action = "elasticmapreduce:AddJobFlowSteps"
    refused = unauthorized("AddJobFlowSteps", "AccessDeniedException", action, arn)
    message = str(lake_error_of(refused, CLUSTER))
    assert f"{action} on {arn} was refused to {US}" in message
    assert "with tag vendor=segment" in message


def test_what_lake_formation_refuses_is_not_granted_by_a_policy() -> None:
    reason = "Insufficient Lake Formation permission(s): Required Create Table on ios_prod"
    refused = answered("CreateTable", "AccessDeniedException", reason)
    message = str(lake_error_of(refused, "ios_prod.track_order"))
    assert f"AWS says: {reason}. Lake Formation governs the catalog: grant it there" in message
    assert "glue:CreateTable on arn:aws:glue:*:*:table/ios_prod/track_order was refused." in message


INVALID = "Eventlake has invalid configuration for "
KEYS = "Eventlake has invalid AWS credentials: "
NO_BUCKET = f"{INVALID}`storage`: S3 bucket {LAKE} does not exist"
ELSEWHERE = f"{INVALID}`region`: S3 bucket {LAKE} is not in the region"
NO_CLUSTER = f"{INVALID}`emr_cluster_id`: there is no EMR cluster {CLUSTER}"
RUNNING = "Set the id of a cluster that runs"
MISSING = (f"{KEYS}none were found", "Set AWS_PROFILE")
EXPIRED = (f"{KEYS}they have expired", "Log in again")
UNKNOWN = (f"{KEYS}AWS does not accept the keys", "Correct AWS_ACCESS_KEY_ID")
CLOCK = (f"{KEYS}the clock of this machine is wrong", "Set it by NTP")
NO_STEP = "Specified job flow ID does not exist."
NO_TOKEN = "The security token included in the request is"
OTHER_ACCOUNT = "arn:aws:glue:eu-west-1:999999999999:catalog"
ON_S3, ON_EMR, ON_GLUE = LAKE, CLUSTER, "ios_prod"


@pytest.mark.parametrize(
    ("error", "resource", "begins", "remedy"),
    [
        (
            answered("ListObjectsV2", "NoSuchBucket", "The specified bucket does not exist"),
            *(ON_S3, NO_BUCKET, "Correct the name in `storage`"),
        ),
        (answered("HeadBucket", "404", "Not Found"), ON_S3, NO_BUCKET, "create the bucket"),
        (
            answered(
                "ListObjectsV2",
                "PermanentRedirect",
                "The bucket you are attempting to access must be addressed using the specified "
                "endpoint. Please send all future requests to this endpoint.",
                Endpoint="lake-bucket.s3.eu-central-1.amazonaws.com",
            ),
            *(ON_S3, ELSEWHERE, "Set `region: eu-central-1`"),
        ),
        (
            answered(
                "GetObject",
                "AuthorizationHeaderMalformed",
                "The authorization header is malformed; the region 'us-east-1' is wrong; "
                "expecting 'eu-central-1'",
                Region="eu-central-1",
            ),
            *(ON_S3, ELSEWHERE, "Set `region: eu-central-1`"),
        ),
        (
            OSError(
                "When getting information for bucket 'lake-bucket': AWS Error UNKNOWN (HTTP "
                "status 301) during HeadBucket operation: No response body. Looks like the "
                "configured region is 'us-east-1' while the bucket is located in 'eu-west-1'."
            ),
            *(ON_S3, ELSEWHERE, "Set `region: eu-west-1`"),
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
            *(ON_EMR, NO_CLUSTER, RUNNING),
        ),
        (
            answered("AddJobFlowSteps", "ValidationException", NO_STEP),
            *(ON_EMR, NO_CLUSTER, RUNNING),
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
            unauthorized(
                "GetDatabase",
                "AccessDeniedException",
                "glue:GetDatabase",
                OTHER_ACCOUNT,
                "because no resource-based policy allows the glue:GetDatabase action",
            ),
            ON_GLUE,
            f"{INVALID}`glue_catalog_id`: 999999999999 is not the account that we are in",
            "Set `glue_catalog_id: '123456789012'`",
        ),
        (
            answered("GetTable", "EntityNotFoundException", "Catalog 999999999999 not found."),
            *(ON_GLUE, f"{INVALID}`glue_catalog_id`: Glue has no such catalog", "leave it out"),
        ),
        (NoCredentialsError(), ON_S3, *MISSING),
        (ProfileNotFound(profile="x"), ON_S3, *MISSING),
        (
            answered("PutObject", "ExpiredToken", "The provided token has expired."),
            *(ON_S3, *EXPIRED),
        ),
        (answered("GetTable", "ExpiredTokenException", f"{NO_TOKEN} expired"), ON_GLUE, *EXPIRED),
        (
            OSError(
                "When listing objects under key 'a/' in bucket 'lake-bucket': AWS Error UNKNOWN "
                "(HTTP status 400) during ListObjectsV2 operation: Unable to parse ExceptionName: "
                "ExpiredToken Message: The provided token has expired."
            ),
            *(ON_S3, *EXPIRED),
        ),
        (
            answered("GetCallerIdentity", "InvalidClientTokenId", f"{NO_TOKEN} invalid."),
            *(ON_S3, *UNKNOWN),
        ),
        (
            answered("AddJobFlowSteps", "UnrecognizedClientException", f"{NO_TOKEN} invalid."),
            *(ON_EMR, *UNKNOWN),
        ),
        (
            answered(
                "PutObject",
                "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
            ),
            *(ON_S3, *CLOCK),
        ),
        (
            answered(
                "GetTable",
                "InvalidSignatureException",
                "Signature expired: 20261116T080000Z is now earlier than 20261116T095500Z",
            ),
            *(ON_GLUE, *CLOCK),
        ),
    ],
    ids=lambda value: getattr(value, "operation_name", type(value).__name__),
)
def test_a_wrong_setting_is_named_with_its_remedy(
    error: Exception, resource: str, begins: str, remedy: str
) -> None:
    wrong = lake_error_of(error, resource)
    assert type(wrong) is InvalidSetting
    assert wrong.error_code == "Segment.InvalidSettings"
    assert str(wrong).startswith(begins)
    assert remedy in str(wrong)
    assert type(as_lake_error(error)) is InvalidSetting


def test_the_local_server_refuses_in_the_same_words(aws: AwsServer) -> None:
    s3, emr = aws.client("s3"), aws.client("emr")
    no_bucket = pytest.raises(InvalidSetting, match="S3 bucket nowhere does not exist")
    with no_bucket, aws_call("nowhere"):
        s3.list_objects_v2(Bucket="nowhere")
    no_cluster = pytest.raises(InvalidSetting, match=f"there is no EMR cluster {CLUSTER}")
    with no_cluster, aws_call(CLUSTER):
        emr.describe_cluster(ClusterId=CLUSTER)
