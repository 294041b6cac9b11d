"""Copies within a bucket, made by S3 itself."""

from typing import Any

from s3transfer.manager import (  # type: ignore[import-untyped]
    TransferConfig,
    TransferManager,
)

LARGEST = 5 << 30
"""What S3 copies in one request; more goes in parts."""

PART_BYTES = 512 << 20


def copy_object(client: Any, bucket: str, source: str, target: str, size: int) -> None:
    """Copy an object of a known size."""
    origin = {"Bucket": bucket, "Key": source}
    if size <= LARGEST:
        client.copy_object(Bucket=bucket, Key=target, CopySource=origin)
        return
    config = TransferConfig(multipart_threshold=LARGEST, multipart_chunksize=PART_BYTES)
    with TransferManager(client, config) as transfers:
        transfers.copy(origin, bucket, target).result()  # which aborts its upload if it fails
