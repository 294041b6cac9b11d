"""Single requests to S3, and what its answers mean to us."""

from typing import Any

from botocore.exceptions import (
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

_BODY_ATTEMPTS = 4


def read_object(client: Any, **place: str) -> tuple[bytes | None, str]:
    """Content and ETag of an object; None where there is none."""
    for attempt in range(1, _BODY_ATTEMPTS + 1):
        try:
            answer = client.get_object(**place)
            body: bytes = answer["Body"].read()
            return body, str(answer["ETag"])
        except ClientError as error:
            if is_missing(error) or is_hidden(error, client, **place):
                return None, ""
            raise
        except (IncompleteReadError, ReadTimeoutError, ResponseStreamingError):
            # botocore tries again until the answer begins, not when it breaks off.
            if attempt == _BODY_ATTEMPTS:
                raise
    raise AssertionError("unreachable")


def is_missing(error: ClientError) -> bool:
    """Whether there is no such object; a bucket that is not there is another matter."""
    return _code(error) in ("NoSuchKey", "404", "NotFound")


def is_hidden(error: ClientError, client: Any, Bucket: str, Key: str) -> bool:
    """Whether S3 refuses to tell that there is no such object.

    It does so to who may not list the whole bucket, whatever else he may list; so that is asked.
    """
    if _code(error) not in ("AccessDenied", "403"):
        return False
    try:
        page = client.list_objects_v2(Bucket=Bucket, Prefix=Key, MaxKeys=1)
    except ClientError:
        return False
    return all(found["Key"] != Key for found in page.get("Contents", ()))


def is_lost(error: ClientError) -> bool:
    """Whether a condition did not hold: somebody else was first."""
    return _code(error) in ("PreconditionFailed", "412", "NoSuchKey")


def is_conflict(error: ClientError) -> bool:
    """Whether somebody writes the same object at this moment."""
    return _code(error) in ("ConditionalRequestConflict", "OperationAborted", "409")


def _code(error: ClientError) -> str:
    return str(error.response["Error"].get("Code", ""))
