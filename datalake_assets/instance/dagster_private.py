"""All uses of Dagster's private parts. Where Dagster has no public way, this module holds it, and
`tests/datalake_assets/instance/test_dagster_private.py` fails loudly if an upgrade changes one."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import dagster as dg
from dagster._core.events import ASSET_CHECK_EVENTS, ASSET_EVENTS, EVENT_TYPE_TO_PIPELINE_RUN_STATUS
from dagster._core.execution.context.metadata_logging import (
    AssetMetadataHandle,
    OutputMetadataAccumulator,
)
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetKeyTable,
    SqlEventLogStorageTable,
)
from sqlalchemy import Connection, Engine, bindparam, create_engine, event, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite

NO_COMPUTE_LOGS = {
    "module": "dagster._core.storage.noop_compute_log_manager",
    "class": "NoOpComputeLogManager",
}
"""The output of runs stays on the terminal instead of files; no public class does that."""

REPOSITORY = "__repository__"
"""What Dagster calls the definitions of a code location."""

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
    """The last evaluation of each check that has one, and is not planned by a run in progress."""
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key([*keys])
    evaluations = {key: record.evaluation for key, record in latest.items()}
    return {k: e for k, e in evaluations.items() if isinstance(e, dg.AssetCheckEvaluation)}


def list_runs_in(location: str, instance: dg.DagsterInstance) -> None:
    """Store the runs of this process as those of a code location. Dagster's home page leaves out
    runs without one, as `execute_in_process` makes them."""
    storage: Any = instance.run_storage
    add_run: Callable[[dg.DagsterRun], dg.DagsterRun] = storage.add_run

    def added(run: dg.DagsterRun) -> dg.DagsterRun:
        repository = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(location), REPOSITORY)
        return add_run(run.with_job_origin(RemoteJobOrigin(repository, run.job_name)))

    storage.add_run = added


def keep_connections(instance: dg.DagsterInstance) -> None:
    """Store the events of this process over connections that stay open, and those that Dagster
    has at once in batches.

    Dagster opens a connection or two for each event. In SQLite, it also compiles its statements
    anew and waits for the disk: 8 ms an event, 1.3 ms with this. The databases keep their
    write-ahead log; what a power cut can take are the last events, never the consistency of the
    file, and never rows of the lake.
    """
    storage: Any = instance.event_log_storage
    if not _takes_batches(storage) or "store_event_batch" in vars(storage):
        return
    if _is_sqlite(storage):
        _keep_sqlite_open(storage)
    else:
        instance.optimize_for_webserver(statement_timeout=0, pool_recycle=60, max_overflow=20)
    storage.store_event_batch = partial(_store, storage)
    os.environ.setdefault("DAGSTER_EVENT_BATCH_SIZE", str(_MOST_EVENTS))


@contextmanager
def events_together(instance: dg.DagsterInstance) -> Iterator[None]:
    """Store the events of a block at its end, in one transaction; in SQLite, in one of the run's
    database and one of the index. A read within the block stores what there is before it."""
    storage: Any = instance.event_log_storage
    if not _takes_batches(storage) or "store_event" in vars(storage):
        yield
        return
    batch = _Batch(storage)
    before = {name: vars(storage)[name] for name in _REPLACED if name in vars(storage)}
    storage.store_event, storage.store_event_batch = batch.add, batch.extend
    storage._connect = batch.connecting(storage._connect)
    try:
        yield
    finally:
        for name in _REPLACED:
            vars(storage).pop(name)
        vars(storage).update(before)
        batch.store()


_REPLACED = ("store_event", "store_event_batch", "_connect")
_MOST_EVENTS = 1_000


class _Batch:
    """Events that wait to be stored."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage
        self._events: list[Any] = []
        self._lock = RLock()  # messages may come from other threads

    def add(self, event: Any) -> None:
        self.extend([event])

    def extend(self, events: Sequence[Any]) -> None:
        with self._lock:
            self._events += events
            if len(self._events) >= _MOST_EVENTS:
                self.store()

    def store(self) -> None:
        with self._lock:
            events, self._events = self._events, []
            if events:
                _store(self._storage, events)

    def connecting(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        def stored_first(*shard: str) -> Any:
            self.store()
            return connect(*shard)

        return stored_first


def _is_sqlite(storage: Any) -> bool:
    return hasattr(storage, "conn_string_for_shard")


def _takes_batches(storage: Any) -> bool:
    """Storages of other databases store their events as they do."""
    return _is_sqlite(storage) or type(storage).__name__ == "PostgresEventLogStorage"


def _keep_sqlite_open(storage: Any) -> None:
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


_ASSET_EVENTS = {
    dg.DagsterEventType.ASSET_MATERIALIZATION,
    dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED,
    dg.DagsterEventType.ASSET_OBSERVATION,
}
_INDEXED = {*ASSET_EVENTS, *ASSET_CHECK_EVENTS, *EVENT_TYPE_TO_PIPELINE_RUN_STATUS}


class _Stored(NamedTuple):
    """An event in the table of all runs: its row, and the id of that row."""

    event: Any
    row: dict[str, Any]
    id: int


def _store(storage: Any, events: Sequence[Any]) -> None:
    """What `store_event` does for each event, with all rows of a table at once."""
    rows = [storage._event_to_row(one) for one in events]
    found = list(zip(events, rows, strict=True))
    if _is_sqlite(storage):
        for run_id in dict.fromkeys(row["run_id"] for row in rows):
            with storage.run_connection(run_id) as connection:
                of_run = [row for row in rows if row["run_id"] == run_id]
                connection.execute(SqlEventLogStorageTable.insert(), of_run)
        found = [(one, row) for one, row in found if one.dagster_event_type in _INDEXED]
    if not found:
        return
    with storage.index_transaction() as connection:
        ids = _insert_events(connection, [row for _, row in found])
        stored = [_Stored(one, row, id) for (one, row), id in zip(found, ids, strict=True)]
        _store_assets(storage, connection, [one for one in stored if _is_of_asset(one.event)])
        _store_checks(connection, stored)


def _insert_events(connection: Connection, rows: list[dict[str, Any]]) -> Sequence[int]:
    """Returns the ids of the rows."""
    insert = SqlEventLogStorageTable.insert()
    if connection.dialect.name == "sqlite":
        connection.execute(insert, rows)
        last: int = connection.exec_driver_sql("SELECT last_insert_rowid()").scalar_one()
        return range(last - len(rows) + 1, last + 1)  # until the commit, no other process writes
    id = SqlEventLogStorageTable.c.id
    returning = insert.returning(id, sort_by_parameter_order=True)
    return connection.execute(returning, rows).scalars().all()


def _is_of_asset(event: Any) -> bool:
    return event.dagster_event_type in _ASSET_EVENTS and event.dagster_event.asset_key is not None


def _store_assets(storage: Any, connection: Connection, stored: Sequence[_Stored]) -> None:
    """The tags of events, and the last events of each asset."""
    if not stored:
        return
    events, ids = [one.event for one in stored], [one.id for one in stored]
    storage._store_asset_event_tags(connection, events, ids)
    last = {(one.row["asset_key"], one.event.dagster_event_type): one for one in stored}
    assets: dict[str, dict[str, Any]] = {}
    for one in sorted(last.values(), key=lambda one: one.id):
        assets.setdefault(one.row["asset_key"], {}).update(_asset_values(one))
    alike: dict[frozenset[str], list[dict[str, Any]]] = {}
    for key, values in sorted(assets.items()):  # in one order, so that two runs cannot deadlock
        alike.setdefault(frozenset(values), []).append({"asset_key": key, **values})
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    for names, rows in alike.items():
        insert = dialect.insert(AssetKeyTable)
        new = {name: insert.excluded[name] for name in names}
        unique = [AssetKeyTable.c.asset_key]
        connection.execute(insert.on_conflict_do_update(index_elements=unique, set_=new), rows)


def _asset_values(one: _Stored) -> dict[str, Any]:
    """What an event changes in the row of its asset."""
    time = datetime.fromtimestamp(one.event.timestamp, UTC)
    values: dict[str, Any] = {"last_materialization_timestamp": time}
    if one.event.dagster_event_type is not dg.DagsterEventType.ASSET_OBSERVATION:
        values["last_run_id"] = one.row["run_id"]
    if one.event.dagster_event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
        # Serialized once: a table with many columns has a long event.
        entry = f'"event_log_entry": {one.row["event"]}, "storage_id": {one.id}'
        values["last_materialization"] = f'{{"__class__": "EventLogRecord", {entry}}}'
    return values


def _store_checks(connection: Connection, stored: Sequence[_Stored]) -> None:
    """The state of each check in a run: planned, or its last evaluation."""
    planned = [row for one in stored for row in _planned_rows(one)]
    if planned:
        connection.execute(AssetCheckExecutionsTable.insert(), planned)
    evaluations = [one for one in stored if one.event.dagster_event_type is _EVALUATION]
    last = {_check_of(row): row for row in map(_evaluation_row, evaluations)}
    known = _known_checks(connection, last)
    columns = AssetCheckExecutionsTable.c
    if changed := [{"known": known[check], **row} for check, row in last.items() if check in known]:
        update = AssetCheckExecutionsTable.update().where(columns.id == bindparam("known"))
        connection.execute(update, changed)
    if new := [row for check, row in last.items() if check not in known]:
        connection.execute(AssetCheckExecutionsTable.insert(), new)


_EVALUATION = dg.DagsterEventType.ASSET_CHECK_EVALUATION
_Check = tuple[str, str, str, str | None]
"""Asset, name, run and partition of a check."""


def _check_of(row: dict[str, Any]) -> _Check:
    return row["asset_key"], row["check_name"], row["run_id"], row["partition"]


def _check_row(one: _Stored, check: Any, status: Any, partition: str | None) -> dict[str, Any]:
    return {
        "asset_key": check.asset_key.to_string(),
        "check_name": check.check_name,
        "run_id": one.row["run_id"],
        "partition": partition,
        "execution_status": status.value,
        "evaluation_event": one.row["event"],
        "evaluation_event_timestamp": one.row["timestamp"],
        "evaluation_event_storage_id": one.id,
    }


def _planned_rows(one: _Stored) -> Iterator[dict[str, Any]]:
    if one.event.dagster_event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED:
        planned = one.event.dagster_event.event_specific_data
        subset = planned.partitions_subset
        for partition in subset.get_partition_keys() if subset else [None]:
            yield _check_row(one, planned, AssetCheckExecutionRecordStatus.PLANNED, partition)


def _evaluation_row(one: _Stored) -> dict[str, Any]:
    status = AssetCheckExecutionRecordStatus
    evaluation = one.event.dagster_event.event_specific_data
    target = evaluation.target_materialization_data
    reached = status.SUCCEEDED if evaluation.passed else status.FAILED
    row = _check_row(one, evaluation, reached, evaluation.partition)
    return {**row, "materialization_event_storage_id": target.storage_id if target else None}


def _known_checks(connection: Connection, checks: Iterable[_Check]) -> dict[_Check, int]:
    """The checks that have a row already, with its id: planned, or evaluated before."""
    columns, known = AssetCheckExecutionsTable.c, dict[_Check, int]()
    by_run: dict[str, list[tuple[str, str]]] = {}
    for asset, name, run_id, _ in checks:
        by_run.setdefault(run_id, []).append((asset, name))
    for run_id, pairs in by_run.items():
        query = select(columns.asset_key, columns.check_name, columns.partition, columns.id).where(
            columns.run_id == run_id, tuple_(columns.asset_key, columns.check_name).in_(pairs)
        )
        for asset, name, partition, id in connection.execute(query):
            known[asset, name, run_id, partition] = id
    return known


def set_partition_metadata(
    context: dg.AssetExecutionContext, key: dg.AssetKey, metadata: Mapping[str, Mapping[str, Any]]
) -> None:
    """`add_asset_metadata` for all partitions of the next result, without that of results before:
    Dagster copies all it has for each partition that is added."""
    accumulated: dict[Any, Mapping[str, Any]] = {
        AssetMetadataHandle(asset_key=key, partition_key=day): metadata[day] for day in metadata
    }
    step: Any = context.op_execution_context._step_execution_context
    step._metadata_accumulator = OutputMetadataAccumulator(per_output_metadata=accumulated)


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
