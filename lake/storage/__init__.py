"""Where the lake's files lie: one interface, a store for each place."""

from lake.storage.base import Storage, StoredFile
from lake.storage.local import LocalStorage
from lake.storage.opening import open_storage

__all__ = ["LocalStorage", "Storage", "StoredFile", "open_storage"]
