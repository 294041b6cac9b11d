"""Seeds of tests that try something new in each run."""

import os
import time

VARIABLE = "DATALAKE_SEED"


def first_seed() -> int:
    """From $DATALAKE_SEED, else a new one; printed, so that a failure can be repeated."""
    seed = int(os.environ.get(VARIABLE) or time.time_ns())
    print(f"{VARIABLE}={seed}")
    return seed
