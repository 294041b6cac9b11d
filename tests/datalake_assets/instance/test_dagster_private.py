"""Dagster's private parts: only one module uses them, and they are as it expects."""

import inspect
import os
import subprocess
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import dagster as dg
import pytest
from dagster_webserver import app, cli
from dagster_webserver.webserver import DagsterWebserver

from datalake_assets.instance import dagster_private
from tests.support.repo import ROOT

PATTERN = r"\b(dagster[a-z_]*\._[a-z]|from dagster[a-z_]* import _|vars\((app|cli|dev|_cli)\))"


def test_one_module_uses_private_parts_of_dagster() -> None:
    folders = ["datalake_assets", "spark_resources", "eventlake", "benchmarks", "deploy"]
    found = subprocess.run(
        ["grep", "-rlE", "--include=*.py", "--include=*.yaml", PATTERN, *folders, "dagster.yaml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert found == [str(Path(dagster_private.__file__).relative_to(ROOT))]


def test_an_upgrade_has_not_changed_them() -> None:
    """If this fails, an upgrade of Dagster needs a change of `dagster_private.py`."""
    logs = dagster_private.NO_COMPUTE_LOGS
    assert inspect.isclass(getattr(import_module(logs["module"]), logs["class"]))
    assert find_spec(f"{dagster_private.DAEMON_MODULE}.__main__")

    dev = import_module("dagster._cli.dev")
    started = inspect.getsource(dev.dev_command_impl)
    assert "open_ipc_subprocess(" in started and '"dagster_webserver"]' in started
    assert callable(import_module("dagster._cli").main)
    assert vars(app)["DagsterWebserver"] is DagsterWebserver and callable(cli.main)
    assert "DagsterWebserver(" in inspect.getsource(app)
    assert "build_middleware" in vars(DagsterWebserver)

    sqlite = import_module("dagster._core.storage.event_log").SqliteEventLogStorage
    assert {"_connect", "conn_string_for_shard", "path_for_shard"} <= vars(sqlite).keys()
    assert "with self._db_lock:" in inspect.getsource(sqlite._connect)

    with dg.DagsterInstance.ephemeral() as instance:
        storage = instance.event_log_storage
        assert callable(storage.get_latest_storage_id_by_partition)
        assert callable(storage.get_latest_asset_check_execution_by_key)


@dg.op
def _two_events() -> Iterator[object]:
    yield dg.AssetMaterialization("a", partition="2026-10-01")
    yield dg.AssetCheckEvaluation(asset_key=dg.AssetKey("a"), check_name="c", passed=True)
    yield dg.Output(None)


@dg.job
def _writes_events() -> None:
    _two_events()


@pytest.mark.parametrize("keep", [False, True])
def test_events_over_kept_connections_are_those_of_dagster(tmp_path: Path, keep: bool) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        if keep:
            dagster_private.keep_connections(instance)
            dagster_private.keep_connections(instance)  # once more changes nothing
        result = _writes_events.execute_in_process(instance=instance)
        files = dagster_private.sqlite_files_of_run(instance, result.run_id)
        [shard] = [file for file in files if file.suffix == ".db"]
        # The webserver of another process follows the run by this time.
        assert shard.stat().st_mtime >= instance.all_logs(result.run_id)[-1].timestamp - 0.1
        kinds = [event.event_type for event in result.all_events]
    assert not [name for fd in Path("/proc/self/fd").iterdir() if (name := _target(fd, tmp_path))]
    with dg.DagsterInstance.local_temp(str(tmp_path)) as other:
        stored = other.all_logs(result.run_id)
        assert [entry.dagster_event_type for entry in stored if entry.dagster_event] == kinds
        assert other.get_latest_materialization_event(dg.AssetKey("a")) is not None
        key = dg.AssetCheckKey(dg.AssetKey("a"), "c")
        assert dagster_private.latest_evaluations(other, [key])[key].passed


def _target(descriptor: Path, folder: Path) -> str:
    """What an open file of this process is, if it is below a folder."""
    try:
        name = os.readlink(descriptor)
    except OSError:
        return ""
    return name if name.startswith(str(folder)) else ""
