"""Storage of the lake's files: one interface, one module per backend."""

from eventlake.clouds import Access, extra_packages
from eventlake.storage.base import Storage, StoredFile
from eventlake.storage.local import LocalStorage

__all__ = ["LocalStorage", "Storage", "StoredFile", "open_storage"]


def open_storage(uri: str, access: Access, private: bool = True) -> Storage:
    """The storage in a bucket, a container or a folder; does not read or write."""
    if uri.startswith("s3://"):
        from eventlake.storage.s3 import S3Storage

        return S3Storage(uri, access.aws)
    if uri.startswith("abfss://"):
        with extra_packages("azure", "storage"):
            from eventlake.storage.adls import AdlsStorage

        return AdlsStorage(uri, access.azure)
    return LocalStorage(uri, private=private)
