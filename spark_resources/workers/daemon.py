"""Spark's daemon of Python workers, which has at hand what they need before it forks the first.

Imports and compiled code are there once instead of once per worker, and their memory is shared.
Where a process waits that has got ready ahead, that one becomes the daemon: `workers_ahead.py`.
"""

from spark_resources.workers.ahead import hand_over


def main() -> None:
    if hand_over():
        return
    from pyspark import daemon

    from spark_resources.workers.preload import get_ready

    get_ready()
    daemon.manager()


if __name__ == "__main__":
    main()
