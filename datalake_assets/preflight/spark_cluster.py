"""The standalone cluster: its master answers, its workers have room, our Python and the storage.

It is tried as runs use it, by an application of its own, which takes some seconds.
"""

from collections.abc import Iterator
from functools import partial

from datalake_assets.preflight.finding import Finding, Remark, looked
from eventlake.lake import Lake
from eventlake.runs.context import Silent
from spark_resources.engines.cluster.capacity import cores
from spark_resources.engines.cluster.engine import ClusterSession
from spark_resources.engines.cluster.errors import NoExecutors

_WAIT_SECONDS = 30.0  # less than runs do: somebody looks on


def spark_cluster_findings(lake: Lake) -> Iterator[Finding]:
    """Each as the one before it lets it be tried."""
    with ClusterSession(lake.settings, lake.storage, Silent(), _WAIT_SECONDS) as session:
        looks = {
            "Spark master": _master,
            "Spark executors": _executors,
            "Python of the workers": _python,
            "storage, from there": _storage,
        }
        for what, look in looks.items():
            found = looked(what, partial(look, session))
            yield found
            if found.level != "ok":
                return


def _master(session: ClusterSession) -> str:
    workers = session.workers
    total = cores(sum(worker.cores for worker in workers))
    memory = sum(worker.memory_mb for worker in workers)
    many = "s" if len(workers) != 1 else ""
    return f"{session.engine}, {len(workers)} worker{many} with {total} and {memory:,} MB in all"


def _executors(session: ClusterSession) -> str:
    try:
        found = session.executors.count
    except NoExecutors as none:
        raise Remark(
            f"none within {_WAIT_SECONDS:g} s: other applications have all cores, or the workers "
            "are gone; runs wait longer (`wait_minutes` under `spark`)"
        ) from none
    return f"{found}, each with {session.shape}"


def _python(session: ClusterSession) -> str:
    session.dataflow()
    if session.brought is None:
        return f"{session.python}, with the packages that are installed here"
    return f"{session.python}; each run brings the packages, since the workers have others"


def _storage(session: ClusterSession) -> str:
    return session.try_storage("segment-stage")
