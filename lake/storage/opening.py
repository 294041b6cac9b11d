"""From where a lake lies to its storage."""

from lake.aws.access import AwsAccess
from lake.storage.base import Storage
from lake.storage.local import LocalStorage


def open_storage(uri: str, access: AwsAccess) -> Storage:
    """The store at `s3://bucket[/prefix]`, or in a folder; nothing is read or written by it."""
    return LocalStorage(uri)
