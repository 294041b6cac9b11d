"""Where the lake's files lie: one interface, a store for each place."""

from eventlake.storage.base import Storage, StoredFile
from eventlake.storage.factory import open_storage
from eventlake.storage.local import LocalStorage

__all__ = ["LocalStorage", "Storage", "StoredFile", "open_storage"]
