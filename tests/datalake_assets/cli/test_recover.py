"""`datalake recover`."""

from datetime import UTC, datetime, timedelta

from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.runs.open_runs import OpenRun
from eventlake.sample import IOS_PROD
from eventlake.state.lease import Holder, Lease, myself
from eventlake.state.report import RunFacts
from eventlake.storage.documents import encode
from tests.support.lakes.sample_lake import SampleLake
from tests.support.terminal import Terminal, everything_below

GONE = Holder("another-machine", 7, datetime.now(UTC) - timedelta(minutes=5))


def leave_dead_run(lake: Lake) -> None:
    """A sync of `ios_prod` that died while it held the lease."""
    facts = RunFacts("W1", IOS_PROD.id, "ios_prod", "17", datetime.now(UTC), "")
    storage = lake.storage
    storage.write(paths.open_run(IOS_PROD.id, "17"), encode(OpenRun(facts, 0, GONE)))
    storage.write(paths.lease(IOS_PROD.id), encode(Lease("17", "sync", GONE)))
    storage.write(f"{paths.stage(IOS_PROD.id, '17')}/0/x.parquet", b"staged")


def test_where_all_is_well_it_says_so_and_does_nothing(
    terminal: Terminal, filled: SampleLake
) -> None:
    before = everything_below(filled.folder)
    said = terminal.run("recover")
    assert said.code == 0
    assert said.out.splitlines() == ["web_shop: nothing to do.", "ios_prod: nothing to do."]
    assert everything_below(filled.folder) == before


def test_it_tells_what_it_did(terminal: Terminal, filled: SampleLake) -> None:
    leave_dead_run(filled.lake)
    said = terminal.run("recover", "--source", "ios_prod")
    assert said.code == 0
    assert said.out.splitlines() == [
        "ios_prod: run 17 had died without a report; it now has a failed one.",
        "ios_prod: freed the lease that sync (run 17, process 7 on another-machine) left behind.",
    ]
    assert filled.lake.storage.files("segment-stage") == []
    assert terminal.run("recover").out.count("nothing to do") == 2
    [failed, *_] = terminal.run("reports", "--source", "ios_prod", "--json").json
    assert (failed["run_id"], failed["status"]) == ("17", "failed")


def test_as_json(terminal: Terminal, filled: SampleLake) -> None:
    leave_dead_run(filled.lake)
    [web, ios] = terminal.run("recover", "--json").json
    assert (web["source"], web["runs_closed"], web["lease_freed"]) == ("web_shop", [], None)
    assert (ios["runs_closed"], ios["lease_freed"]) == (["17"], "17")
    assert ios["replaced"] == {"files": 0, "bytes": 0}


def test_who_is_at_work_is_named_and_left_alone(terminal: Terminal, filled: SampleLake) -> None:
    lease = encode(Lease("18", "sync", myself()))
    filled.lake.storage.write(paths.lease(IOS_PROD.id), lease)
    said = terminal.run("recover", "--source", IOS_PROD.id)
    assert said.out == "ios_prod: nothing to do.\n"
    assert "at work: sync (run 18" in said.err
    assert filled.lake.storage.read(paths.lease(IOS_PROD.id)) == lease


def test_an_unknown_source_is_wrong_use(terminal: Terminal, filled: SampleLake) -> None:
    assert terminal.run("recover", "--source", "android").code == 2
