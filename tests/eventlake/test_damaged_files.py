"""Files of the lake that were cut, emptied or overwritten: made again, or named with a remedy."""

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from eventlake.audit.audit import audit
from eventlake.audit.snapshot import FIRST, LAST, Scope
from eventlake.checks.repair import repair_catalog
from eventlake.records.find import find
from eventlake.rules import paths
from eventlake.rules.errors import LakeError
from eventlake.runs.context import now
from eventlake.runs.report_history import newest_reports
from eventlake.runs.unit import Window
from eventlake.status import source_status
from eventlake.upkeep.recovery import rebuild, recover
from tests.support.lakes.archive import identify, track
from tests.support.lakes.retyping import lake_of, no_lease_is_held, suppress
from tests.support.lakes.runs import Runs

DAY, NEXT = "2026-10-01", "2026-10-02"
HELD = {f"m{n}" for n in range(4)} | {"i1", "n1"}
SOURCE = "segment-data/_state/sources/S1"
CATALOG = "segment-data/_state/catalog"


def recover_catalog(runs: Runs) -> None:
    repair_catalog(lake_of(runs), runs.source, no_lease_is_held)


def recover_from_data(runs: Runs) -> None:
    runs.set(start=DAY)
    rebuild(lake_of(runs), runs.source, no_lease_is_held)


def replay(runs: Runs) -> None:
    runs.replay(DAY, "2026-10-03")


def remove(runs: Runs) -> None:
    (runs.root / "segment-data/_state/suppression/0000000001.parquet").unlink()


@dataclass(frozen=True)
class Kind:
    """A kind of file: one of it, and how it heals; None: by the next run, unless it is named."""

    path: str
    heal: Callable[[Runs], None] | None = None
    sync_works: bool = True
    status_names_it: bool = False
    warning: str = ""
    made_here: bool = False  # the lake of the test has none


KINDS = [
    Kind(f"{SOURCE}/ids/day={DAY}/*.arrow"),
    Kind(f"{SOURCE}/ids/day={NEXT}/*.arrow"),
    Kind(f"{SOURCE}/ledger/*.json", warning="Its raw files are read again"),
    Kind(f"{SOURCE}/manifests/0000000001.json"),
    Kind(f"{SOURCE}/state.json", recover_from_data, sync_works=False),
    Kind(f"{SOURCE}/upkeep/reports/*.json"),
    Kind(f"{CATALOG}/shop/identify/table.json", recover_catalog, status_names_it=True),
    Kind(f"{CATALOG}/shop/track_order/table.json", recover_catalog, status_names_it=True),
    Kind(f"{CATALOG}/shop/identify/partitions/*.json", recover_catalog, True, True),
    Kind(f"{CATALOG}/shop/track_order/partitions/*.json", recover_catalog, False, True),
    Kind(f"{CATALOG}/__segment_datalake/sync_reports/table.json"),
    Kind(f"{CATALOG}/__segment_datalake/sync_reports/partitions/*.json"),
    Kind("segment-data/_state/suppression/*.parquet", remove, sync_works=False),
    Kind("segment-data/data/S1/**/segment_type=identify/**/*.parquet", replay, True, True),
    Kind("segment-data/reports/**/run_id=R1/report.json"),
    Kind("sync_tracking_datasets/W1/S1/R1/metadata.json"),
    Kind("sync_tracking_datasets/W1/S1/R1/*.parquet"),
    *(
        Kind(path, made_here=True)
        for path in (
            paths.lease("S1"),
            paths.waiting_run("S1", "R9"),
            paths.open_run("S1", "R9"),
            paths.first_seen("S1"),
            paths.alerts("S1"),
            paths.orphans("S1"),
            paths.cleaned("S1"),
            paths.pruned("S1"),
            f"{paths.abandoned('S1')}/R9.json",
        )
    ),
]
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "garbage": lambda data: b"\0garbage{" * (1 + len(data) // 9),
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Syncs, a compaction, a replay, an upkeep and a suppressed person."""
    runs = Runs(tmp_path_factory.mktemp("whole"))
    for n in range(4):
        runs.load(DAY, track("Order", f"m{n}", f"{DAY}T07:00", n=n), name=f"a{n}")
    runs.load(NEXT, identify("i1", f"{NEXT}T07:00"), "{", name="b")
    runs.compact()
    suppress(runs.storage, "ann")
    runs.replay(NEXT, "2026-10-03")
    runs.upkeep()
    return runs.root


@pytest.mark.parametrize(
    "damage",
    ["cut", *(pytest.param(d, marks=pytest.mark.soak) for d in ("empty", "garbage"))],
)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.path)
def test_nothing_is_lost_and_nothing_silent(
    lake: Path, tmp_path: Path, kind: Kind, damage: str
) -> None:
    shutil.copytree(lake, tmp_path, dirs_exist_ok=True)
    path = tmp_path / kind.path if kind.made_here else sorted(tmp_path.glob(kind.path))[-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(DAMAGES[damage](b"" if kind.made_here else path.read_bytes()))
    name = str(path.relative_to(tmp_path))
    runs = Runs(tmp_path, first_run=50)
    runs.archive.day(NEXT).file(
        "late", track("Order", "n1", f"{DAY}T09:00", n=1), track("Order", "m1", f"{NEXT}T09:00")
    )
    if kind.heal is None:
        runs.sync()
        assert kind.warning in " ".join(runs.warnings)
        if name.endswith("report.json"):
            [one] = [one for one in newest_reports(lake_of(runs)) if one.damaged]
            assert name in str(one.source.error)
            assert recover(lake_of(runs), runs.source, now()).reports.rewritten == ("R1",)
            assert path.read_bytes() == (lake / name).read_bytes()
        check_whole(runs)
        return
    if kind.sync_works:
        runs.sync()
    else:
        with pytest.raises(LakeError, match=path.name):
            runs.sync()
    found = source_status(lake_of(runs), runs.source, now())
    assert any(name in text for text in found.damaged) is kind.status_names_it
    if kind.status_names_it:
        with pytest.raises(LakeError, match=path.name):
            queried(runs)
    kind.heal(runs)
    runs.sync()
    check_whole(runs)


@pytest.mark.parametrize(
    ("path", "named", "heal"),
    [
        (f"{SOURCE}/state.json", "state.json is missing", recover_from_data),
        (f"{CATALOG}/shop/identify/table.json", "identify is not in the catalog", recover_catalog),
        (f"{CATALOG}/shop/identify/partitions/*", "lacks partitions with 1 rows", recover_catalog),
        ("segment-data/data/S1/versions/**/*.parquet", "such as segment-data/data/S1/", replay),
    ],
)
def test_a_deleted_file_is_named_by_status(
    lake: Path, tmp_path: Path, path: str, named: str, heal: Callable[[Runs], None]
) -> None:
    shutil.copytree(lake, tmp_path, dirs_exist_ok=True)
    sorted(tmp_path.glob(path))[-1].unlink()
    runs = Runs(tmp_path, first_run=50)
    found = source_status(lake_of(runs), runs.source, now())
    [problem] = (
        [found.waiting.problem, *found.damaged] if path.endswith("state.json") else found.damaged
    )
    assert named in str(problem)
    runs.archive.day(NEXT).file("late", track("Order", "n1", f"{DAY}T09:00", n=1))
    heal(runs)
    runs.sync()
    check_whole(runs)


def test_a_damaged_report_of_a_run_that_committed_nothing_is_removed(
    lake: Path, tmp_path: Path
) -> None:
    shutil.copytree(lake, tmp_path, dirs_exist_ok=True)
    path = tmp_path / paths.report("S1", "2026-10-19", "R99")
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"type":')
    runs = Runs(tmp_path)
    assert recover(lake_of(runs), runs.source, now()).reports.removed == ("R99",)
    assert not path.exists()


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_event_is_found_without_its_index(lake: Path, tmp_path: Path, damage: str) -> None:
    shutil.copytree(lake, tmp_path, dirs_exist_ok=True)
    for path in tmp_path.glob(f"{SOURCE}/ids/day={DAY}/*.arrow"):
        path.write_bytes(DAMAGES[damage](path.read_bytes()))
    runs = Runs(tmp_path)
    assert [row.table_name for row in find(lake_of(runs), runs.source, "m1").rows] == [
        "track_order"
    ]


def check_whole(runs: Runs) -> None:
    found = source_status(lake_of(runs), runs.source, now())
    assert (found.failing, found.waiting.problem, found.damaged) == (None, None, ())
    assert queried(runs) == Counter(HELD)
    assert audit(lake_of(runs), Scope(runs.source, Window(FIRST, LAST))).agrees


def queried(runs: Runs) -> Counter[str]:
    # Here, since a server of forks that has loaded DuckDB complains of it when it ends.
    from eventlake.sql import LakeSql

    sql = LakeSql(runs.catalog, runs.storage)
    tables = ("track_order", "identify")
    return Counter(
        id
        for table in tables
        for id in sql.query(f"SELECT message_id FROM shop.{table}")["message_id"].to_pylist()
    )
