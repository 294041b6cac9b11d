"""Storage of the lake's files: one interface, one module per backend."""

from eventlake.aws.access import AwsAccess
from eventlake.storage.base import Storage, StoredFile
from eventlake.storage.local import LocalStorage

__all__ = ["LocalStorage", "Storage", "StoredFile", "open_storage"]


def open_storage(uri: str, access: AwsAccess, private: bool = True) -> Storage:
    """The storage at `s3://bucket[/prefix]` or in a folder; does not read or write."""
    if uri.startswith("s3://"):
        from eventlake.storage.s3 import S3Storage

        return S3Storage(uri, access)
    return LocalStorage(uri, private=private)
