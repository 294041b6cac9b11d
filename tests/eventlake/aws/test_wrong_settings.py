"""Every setting that AWS can show to be wrong: its answer, and what people are told of it."""

import pytest
from botocore.exceptions import NoCredentialsError, NoRegionError, ProfileNotFound

from eventlake.aws.refusals import as_lake_error, aws_call
from eventlake.rules.errors import InvalidSetting
from tests.support.aws.recorded import CLUSTER, LAKE, US, answered, told_of
from tests.support.servers.aws import AwsServer

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
