"""Clearing a part of a bucket: objects, and uploads that nobody will finish."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import ClientError

from eventlake.storage.base import THREADS

_AT_ONCE = 1000


def delete_keys(client: Any, bucket: str, keys: Sequence[str]) -> None:
    """Delete objects, as many in one request as S3 allows."""

    def delete(batch: Sequence[str]) -> None:
        objects = [{"Key": key} for key in batch]
        answer = client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
        for refused in answer.get("Errors", ()):
            raise ClientError({"Error": refused}, "DeleteObjects")

    batches = [keys[start : start + _AT_ONCE] for start in range(0, len(keys), _AT_ONCE)]
    if len(batches) == 1:
        delete(batches[0])
    elif batches:
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(delete, batches))


def abort_uploads(client: Any, bucket: str, prefix: str, named: str = "") -> None:
    """Abort unfinished uploads below a prefix; of some name only, if given."""
    more: dict[str, str] = {}
    while True:
        page = client.list_multipart_uploads(Bucket=bucket, Prefix=prefix, **more)
        for upload in page.get("Uploads", ()):
            if named in upload["Key"][len(prefix) :]:
                _abort(client, bucket, upload)
        if not page.get("IsTruncated"):
            return
        more = {
            "KeyMarker": page["NextKeyMarker"],
            "UploadIdMarker": page["NextUploadIdMarker"],
        }


def _abort(client: Any, bucket: str, upload: dict[str, Any]) -> None:
    try:
        client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    except ClientError as error:
        if error.response["Error"].get("Code") != "NoSuchUpload":  # else it is done
            raise
