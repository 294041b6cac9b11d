"""A reader in a process of its own that reads a table through the catalog all the time."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventlake.catalog.local import LocalCatalog
from eventlake.storage import LocalStorage
from tests.support.lakes.runs import Runs

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.support.lakes.watching"])

Partition = tuple[str, ...]
State = frozenset[tuple[str, str]]
"""Message ids and values of a column, as text."""
Look = Callable[[Path, str], dict[Partition, State]]

NOTHING: State = frozenset()


class Watcher:
    """What a reader has seen of each partition: every change, in order."""

    def __init__(self, done: Any) -> None:
        self.seen: dict[Partition, list[State]] = {}
        self.looks = 0
        self._done = done  # the number of looks, in shared memory

    def keep_up(self, steps: int) -> None:
        """Wait until there were more looks than steps: on a busy machine, too, steps are seen."""
        while self._done.value <= steps:
            time.sleep(0.01)

    def give_up(self) -> None:
        """Nobody is to wait for it."""
        self._done.value = 1 << 60

    def take(self, found: dict[Partition, State]) -> None:
        self.looks += 1
        self._done.value = self.looks
        for partition in {*self.seen, *found}:
            states = self.seen.setdefault(partition, [NOTHING])
            now = found.get(partition, NOTHING)
            if states[-1] != now:
                states.append(now)


def by_sql(root: Path, table: str) -> dict[Partition, State]:
    # Here, since a server of forks that has loaded DuckDB complains of it when it ends.
    from eventlake.sql import LakeSql

    storage = LocalStorage(str(root))
    sql = f"SELECT day, hr, message_id, properties_v::VARCHAR v FROM shop.{table}"
    rows = LakeSql(LocalCatalog(storage), storage).query(sql).to_pylist()
    return _grouped(((row["day"], row["hr"]), row["message_id"], row["v"]) for row in rows)


def by_locations(root: Path, table: str) -> dict[Partition, State]:
    """The folders that the catalog names, and the files that lie there."""
    runs = Runs(root)
    return _grouped(
        (partition.values, row["message_id"], str(row["properties_v"]))
        for partition in runs.partitions(table).values()
        for row in runs.read(partition.location)
    )


def _grouped(rows: Iterator[tuple[Any, str, str]]) -> dict[Partition, State]:
    found: dict[Partition, set[tuple[str, str]]] = {}
    for partition, id, value in rows:
        assert (id, value) not in found.setdefault(partition, set()), f"{id} is there twice"
        found[partition].add((id, value))
    return {partition: frozenset(rows) for partition, rows in found.items()}


@contextmanager
def watched(root: Path, table: str, look: Look) -> Iterator[Watcher]:
    """Read all the time while the block runs; the watcher then has what was seen."""
    mine, theirs = _FORKS.Pipe()
    watcher = Watcher(_FORKS.Value("L", lock=False))
    process = _FORKS.Process(target=_watch, args=(root, table, look, watcher, theirs))
    process.start()
    mine.recv()  # has begun
    try:
        yield watcher
    finally:
        mine.send("enough")
        told = mine.recv()
        process.join()
    if isinstance(told, str):
        raise AssertionError(f"the reader failed: {told}")
    watcher.seen, watcher.looks = told


def _watch(root: Path, table: str, look: Look, watcher: Watcher, boss: Any) -> None:
    try:
        watcher.take(look(root, table))
        boss.send("has begun")
        while not boss.poll():
            watcher.take(look(root, table))
        watcher.take(look(root, table))
        boss.recv()
        boss.send((watcher.seen, watcher.looks))
    except BaseException as error:
        watcher.give_up()
        boss.send(repr(error))
        raise
