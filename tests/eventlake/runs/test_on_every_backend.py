"""One archive makes the same lake on every storage, with every catalog."""

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.runs import placement
from eventlake.sql import LakeSql
from tests.support.lakes.archive import order
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.placed_runs import PlacedRuns, all_steps, everything
from tests.support.lakes.runs import Runs
from tests.support.servers.azurite import ACCOUNT, Azurite
from tests.support.servers.glue import strict_glue
from tests.support.servers.metastore import BUCKET, CONTAINER

soak = pytest.mark.soak
BACKENDS = [
    pytest.param("container", "hive"),
    pytest.param("container", "local", marks=soak),
    pytest.param("folder", "hive", marks=soak),
    pytest.param("bucket", "hive", marks=soak),
    pytest.param("bucket", "glue", marks=soak),
    pytest.param("bucket", "local", marks=soak),
]


@pytest.fixture(autouse=True)
def _small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "SPLIT_BYTES", 220)
    monkeypatch.setattr(InProcess, "slots", 2)


@pytest.fixture
def there(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    storage: str,
    catalog: str,
) -> Runs:
    place = str(tmp_path / "lake")
    if storage == "container":
        azurite: Azurite = request.getfixturevalue("azurite")
        place = f"abfss://{azurite.emptied(CONTAINER)}@{ACCOUNT}/lake"
    elif storage == "bucket":
        place = f"s3://{request.getfixturevalue('aws').bucket(BUCKET)}/lake"
    more: dict[str, Any] = {"catalog": catalog}
    if catalog == "glue":
        strict_glue(request.getfixturevalue("aws"), monkeypatch)
    elif catalog == "hive":
        more["hive"] = {"uri": request.getfixturevalue("metastore").uri}
    return PlacedRuns(tmp_path / "there", place, more)


@pytest.mark.parametrize(("storage", "catalog"), BACKENDS)
def test_the_same_archive_makes_the_same_lake(tmp_path: Path, there: Runs) -> None:
    here = Runs(tmp_path / "here")
    for runs in (here, there):
        all_steps(runs)
        for name in "de":
            runs.load("2026-10-02", order(f"m{name}", "2026-10-02T09:00", price=4), name=name)
        runs.compact()
        assert runs.come_home() > 0
    expected, found = everything(here), everything(there)
    # Only the lake's own pages name files, and only they are in its state.
    if there.settings.catalog != "local":
        expected["partitions"] = {
            table: {
                values: msgspec.structs.replace(partition, held=())
                for values, partition in partitions.items()
            }
            for table, partitions in expected["partitions"].items()
        }
        for one in (expected, found):
            one["paths"] = [path for path in one["paths"] if "/_state/catalog/" not in path]
    for what, wanted in expected.items():
        assert found[what] == wanted, what
    for partition in there.partitions("track_order").values():
        assert "/versions/" not in partition.location
    sql = "SELECT * FROM shop.track_order ORDER BY message_id"
    by_duckdb = [LakeSql(runs.catalog, runs.storage).query(sql) for runs in (here, there)]
    assert by_duckdb[0] == by_duckdb[1]
    ids = by_duckdb[1]["message_id"].to_pylist()
    assert ids == sorted(row["message_id"] for row in by_pyarrow(there, "track_order").to_pylist())


def by_pyarrow(runs: Runs, name: str) -> pa.Table:
    """A table as pyarrow reads it from the storage, at the places that the catalog names."""
    fs = runs.storage.fs
    pieces = [
        pq.read_table(runs.storage.fs_path(partition.location), filesystem=fs, partitioning=None)
        for partition in runs.partitions(name).values()
    ]
    return pa.concat_tables(pieces, promote_options="default")
