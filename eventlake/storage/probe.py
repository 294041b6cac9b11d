"""Files written, read and removed again, to try the rights that runs need on storage."""

import uuid

from eventlake.rules.errors import InvalidSetting
from eventlake.storage.base import Storage


def probe(storage: Storage, folder: str) -> str:
    """Try to write, read, list and delete in a folder; nothing of it stays."""
    below = f"{folder}/check-{uuid.uuid4().hex}"
    path = f"{below}/probe"
    try:
        _require(storage.create(path, b"first"), storage, "said that a new object exists already")
        _require(
            not storage.create(path, b"second"),
            storage,
            "wrote an object twice that was to be created only if absent: two runs could commit "
            "the same manifest. Use S3 itself, or a store that honours `If-None-Match`",
        )
        _require(storage.read(path) == b"first", storage, "gave back other bytes than were written")
        storage.write(path, b"third")
        found = [file.path for file in storage.files(below)]
        _require(found == [path], storage, "does not list an object that was just written")
    finally:
        storage.delete_folder(below)
    return f"{storage.full(folder)}/ can be written, read, listed and cleared"


def _require(holds: bool, storage: Storage, otherwise: str) -> None:
    if not holds:
        raise InvalidSetting(
            f"Data lake has invalid configuration for `storage`: {storage.uri} {otherwise}."
        )
