"""Logs that EMR copies to S3, some time after they were written."""

import gzip
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from eventlake.aws.access import AwsAccess

_FILES = ("stderr", "stdout")
_LINES = 40
_WAITS = 12
_WAIT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class LogFolder:
    """The logs of one driver."""

    access: AwsAccess
    folder: str  # as a URI

    def tail(self, sleep: Callable[[float], None]) -> list[str]:
        """The last lines; empty if they are not available within a minute."""
        for _ in range(_WAITS):
            for name in _FILES:
                if lines := self._lines(name):
                    return lines[-_LINES:]
            sleep(_WAIT_SECONDS)
        return []

    def _lines(self, name: str) -> list[str]:
        bucket, _, folder = self.folder.removeprefix("s3://").partition("/")
        s3: Any = self.access.client("s3")
        try:
            found = s3.get_object(Bucket=bucket, Key=f"{folder}/{name}.gz")
            text = gzip.decompress(found["Body"].read()).decode(errors="replace")
        except Exception:  # missing logs are not an error
            return []
        return [line.rstrip() for line in text.splitlines() if line.strip()]
