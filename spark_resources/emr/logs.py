"""The end of a step's logs, which EMR brings to S3 some time after the step has ended."""

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
class StepLogs:
    """The logs of one step."""

    access: AwsAccess
    folder: str  # as a URI

    def tail(self, sleep: Callable[[float], None]) -> list[str]:
        """Its last lines; none if they cannot be had within a minute."""
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
        except Exception:  # logs are for convenience: that they are missing stops nothing
            return []
        return [line.rstrip() for line in text.splitlines() if line.strip()]
