"""A lake in a folder: nothing is written to find out whether it can be."""

import os
from pathlib import Path

from datalake_assets.preflight.finding import Finding, looked
from eventlake.rules.errors import UsageError
from eventlake.settings.models import Settings


def folder_finding(settings: Settings) -> Finding:
    def look() -> str:
        folder = Path(settings.storage_uri)
        standing = next(place for place in (folder, *folder.parents) if place.exists())
        if not standing.is_dir():
            raise UsageError(f"{standing} is a file. Set `storage` to a folder.")
        if not os.access(standing, os.R_OK | os.W_OK | os.X_OK):
            raise UsageError(
                f"{standing} cannot be read and written by this user. Give it the rights (`chmod "
                "u+rwx`), or set `storage` to another folder."
            )
        return str(folder)

    return looked("storage", look)
