"""Starts the daemon of Python workers on every engine, with everything that workers need.

The daemon forks the workers. Imports and compiled kernels are made once, in the daemon, and the
workers share their memory. Spark has unpacked code and packages before it starts the daemon.
"""

import gc
import sys
import traceback
from contextlib import suppress


def preload() -> None:
    """Import what workers need, and load or compile all kernels."""
    import pyarrow as pa
    from pyspark import worker  # noqa: F401

    from eventlake.columnar.compiled import checked_cache
    from eventlake.load import dedup, not_loaded, write  # noqa: F401
    from eventlake.load.warm_up import warm_up

    with suppress(ImportError):
        import pandas  # noqa: F401  # if installed, Arrow imports it for its first NumPy array

    pa.set_cpu_count(1)  # there is one worker per core
    with checked_cache():
        warm_up()
    gc.freeze()  # workers do not collect what they share


def main() -> None:
    from pyspark import daemon

    try:
        preload()
    except Exception:
        # Packages may be missing until they are shipped. A task that needs them fails by itself.
        traceback.print_exc(file=sys.stderr)
    daemon.manager()


if __name__ == "__main__":
    main()
