"""From where a lake lies to its storage."""

from eventlake.aws.access import AwsAccess
from eventlake.storage.base import Storage
from eventlake.storage.local import LocalStorage


def open_storage(uri: str, access: AwsAccess) -> Storage:
    """The store at `s3://bucket[/prefix]`, or in a folder; nothing is read or written by it."""
    if uri.startswith("s3://"):
        from eventlake.storage.s3 import S3Storage

        return S3Storage(uri, access)
    return LocalStorage(uri)
