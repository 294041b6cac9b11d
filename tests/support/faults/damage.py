"""State files that cannot be read."""

import json

from eventlake.storage.documents import FORMAT_VERSION

NEWER_RELEASE = json.dumps({"format_version": FORMAT_VERSION + 1}).encode()
"""A state file of a newer release: unlike a damaged note, it is never taken for a missing one."""
