"""Where the lake's files lie: one interface, a store for each place."""

from eventlake.storage.base import Storage, StoredFile
from eventlake.storage.local import LocalStorage
from eventlake.storage.opening import open_storage

__all__ = ["LocalStorage", "Storage", "StoredFile", "open_storage"]
