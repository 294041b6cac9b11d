"""How often a run on EMR looks at what it waits for."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """There is no longest time: a run may take as long as whoever started it lets it."""

    messages_seconds: float = 2.0
    step_seconds: float = 10.0
    cluster_seconds: float = 60.0
    cancel_seconds: float = 20.0  # for a cancelled step to end by itself

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
