"""Old runs are removed from Dagster, except the latest materialization of a partition."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster import instance_for_test

from datalake_assets.assets.keys import run_tags
from datalake_assets.jobs import RunsRemoved, remove_old_runs
from eventlake.lake import Lake
from tests.support.lakes.settings import settings_of

KEY = dg.AssetKey(["shop", "page"])
LATER = datetime.now(UTC) + timedelta(days=1)


@dg.op(config_schema={"days": [str], "fail": bool})
def load(context: dg.OpExecutionContext) -> None:
    for day in context.op_config["days"]:
        context.log_event(dg.AssetMaterialization(KEY, partition=day or None))
    if context.op_config["fail"]:
        raise dg.Failure("on purpose")


@dg.job
def sync() -> None:
    load()


LAKE, OTHER = (Lake.open(settings_of(storage)) for storage in ("x", "y"))


def ran(
    instance: dg.DagsterInstance, *days: str, fail: bool = False, lake: Lake | None = LAKE
) -> str:
    config = {"ops": {"load": {"config": {"days": list(days), "fail": fail}}}}
    tags = run_tags(lake) if lake else {}
    result = sync.execute_in_process(config, instance=instance, raise_on_error=False, tags=tags)
    return result.run_id


def runs_of(instance: dg.DagsterInstance) -> set[str]:
    return {run.run_id for run in instance.get_runs()}


@pytest.fixture(params=["sqlite", "in memory"])
def instance(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    with (
        instance_for_test(temp_dir=str(tmp_path))
        if request.param == "sqlite"
        else dg.DagsterInstance.ephemeral()
    ) as made:
        yield made


def test_runs_go_that_are_old_and_whose_partitions_were_materialized_since(
    instance: dg.DagsterInstance,
) -> None:
    replaced = ran(instance, "2026-10-01")
    half_replaced = ran(instance, "2026-10-01", "2026-10-02")
    nothing_new, failed = ran(instance), ran(instance, fail=True)
    last = ran(instance, "2026-10-01")
    whole_table, whole_table_again = ran(instance, ""), ran(instance, "")
    early = datetime.now(UTC) - timedelta(days=1)
    assert remove_old_runs(instance, LAKE, early) == RunsRemoved()

    done = remove_old_runs(instance, LAKE, LATER)
    assert (done.removed, done.kept) == (4, 3)
    assert runs_of(instance) == {half_replaced, last, whole_table_again}
    assert not runs_of(instance) & {replaced, nothing_new, failed, whole_table}
    assert instance.get_materialized_partitions(KEY) == {"2026-10-01", "2026-10-02"}
    assert remove_old_runs(instance, LAKE, LATER).removed == 0


def test_the_files_of_a_removed_run_go_and_running_ones_stay(tmp_path: Path) -> None:
    with instance_for_test(temp_dir=str(tmp_path)) as instance:
        run_id = ran(instance)
        assert any(run_id in path.name for path in tmp_path.rglob("*"))
        remove_old_runs(instance, LAKE, LATER)
        assert not any(run_id in path.name for path in tmp_path.rglob("*"))

        config = {"ops": {"load": {"config": {"days": [], "fail": False}}}}
        started = dg.DagsterRunStatus.STARTED
        instance.create_run_for_job(sync, run_config=config, status=started, tags=run_tags(LAKE))
        assert remove_old_runs(instance, LAKE, LATER) == RunsRemoved()


def test_runs_of_others_on_the_same_instance_stay() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        others = {ran(instance, lake=OTHER), ran(instance, lake=None)}
        ran(instance)
        assert remove_old_runs(instance, LAKE, LATER) == RunsRemoved(1, 1)
        assert runs_of(instance) == others


def test_the_number_of_runs_removed_at_once_is_limited() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(3):
            ran(instance)
        assert remove_old_runs(instance, LAKE, LATER, most=2).removed == 2
        assert len(runs_of(instance)) == 1
