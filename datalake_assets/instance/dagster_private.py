"""All uses of Dagster's private parts. Where Dagster has no public way, this module holds it, and
`tests/datalake_assets/instance/test_dagster_private.py` fails loudly if an upgrade changes one."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from sqlalchemy import Connection, Engine, create_engine, event

NO_COMPUTE_LOGS = {
    "module": "dagster._core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}
"""The output of runs stays on the terminal instead of files; no public class does that."""

_WAIT_SECONDS = 60  # for another process that writes to the same database, as in Dagster

DAEMON_MODULE = "dagster._daemon"
"""What `dagster-daemon` runs, for `python -m`: the script may not be on the path."""


def latest_run_storage_ids(instance: dg.DagsterInstance, key: dg.AssetKey) -> Iterable[int]:
    """The storage ids of the last materialization of each partition of an asset."""
    return instance.event_log_storage.get_latest_storage_id_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION
    ).values()


def sqlite_files_of_run(instance: dg.DagsterInstance, run_id: str) -> list[Path]:
    """The database of one run, which Dagster empties but does not delete; none on Postgres."""
    shard = getattr(instance.event_log_storage, "path_for_shard", None)
    return [] if shard is None else list(Path(shard(run_id)).parent.glob(f"{run_id}.db*"))


def latest_evaluations(
    instance: dg.DagsterInstance, keys: Iterable[dg.AssetCheckKey]
) -> dict[dg.AssetCheckKey, dg.AssetCheckEvaluation]:
    """The last evaluation of each check that has one."""
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key([*keys])
    return {key: record.evaluation for key, record in latest.items() if record.evaluation}


def keep_connections(instance: dg.DagsterInstance) -> None:
    """Store the events of this process over connections that stay open, if they go to SQLite.

    Dagster opens two databases for each event, compiles its statements anew, and waits for the
    disk: 8 ms an event, 1.3 ms with this. The databases keep their write-ahead log; what a power
    cut can take are the last events, never the consistency of the file, and never rows of the lake.
    """
    storage: Any = instance.event_log_storage
    if not hasattr(storage, "conn_string_for_shard") or "_connect" in vars(storage):
        return
    create, close = storage._connect, storage.dispose
    engines: dict[str, Engine] = {}

    def opened(shard: str) -> Engine:
        with create(shard):  # creates or upgrades the database
            engine = create_engine(
                storage.conn_string_for_shard(shard),
                pool_size=1,
                connect_args={"timeout": _WAIT_SECONDS, "check_same_thread": False},
            )
        event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=NORMAL"))
        return engine

    @contextmanager
    def connect(shard: str) -> Iterator[Connection]:
        engine = engines.get(shard) or engines.setdefault(shard, opened(shard))
        with storage._db_lock, engine.begin() as connection:
            yield connection
        # The UI follows a run by the time of its file, which the write-ahead log leaves alone.
        os.utime(storage.path_for_shard(shard))

    def dispose() -> None:
        for engine in engines.values():
            engine.dispose()
        engines.clear()
        close()

    storage._connect, storage.dispose = connect, dispose


def run_webserver(webserver: type[Any]) -> None:
    """`dagster-webserver` with another class of server."""
    from dagster_webserver import app, cli

    vars(app)["DagsterWebserver"] = webserver
    vars(cli)["main"]()


def run_dev(webserver_module: str) -> None:
    """`dagster dev` with another module as the process of its webserver."""
    from dagster import _cli
    from dagster._cli import dev

    start: Callable[..., Any] = vars(dev)["open_ipc_subprocess"]

    def started(command: list[str], **options: Any) -> Any:
        ours = [webserver_module if part == "dagster_webserver" else part for part in command]
        return start(ours, **options)

    vars(dev)["open_ipc_subprocess"] = started
    vars(_cli)["main"]()
