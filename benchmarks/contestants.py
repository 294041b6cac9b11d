"""The contestants: how to start each of them, and where to find its tables."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.archive import RAW, SOURCE, Archive
from benchmarks.verify import Tables
from eventlake.lake import Lake
from eventlake.settings.file import load_settings

ROOT = Path(__file__).absolute().parent.parent
_PEERS_BIN = ROOT / ".bench-venv" / "bin"
PY_SPY = _PEERS_BIN / "py-spy"
_BIN = Path(sys.executable).parent
_MAX_TABLES = 100_000


@dataclass(frozen=True)
class Contestant:
    """A program that turns an archive into tables, in its own folder."""

    name: str
    command: Callable[[Path, Path], list[str]]  # given the archive and the contestant's folder
    tables: Callable[[Path], Tables]
    prepare: Callable[[Path, Archive], None] = lambda folder, archive: None
    environment: Callable[[Path], Mapping[str, str]] = field(default=lambda folder: {})
    has_hours: bool = True  # tables are partitioned by day and hour


def lake_folder(folder: Path, archive: Archive) -> None:
    """Create a lake that contains the archive and nothing else."""
    archive.link_into(folder / "lake")
    settings = {
        "workspace_id": "BENCH",
        "storage": "./lake",
        "limits": {"tables": _MAX_TABLES},
        "sources": [{"id": SOURCE.id, "slug": SOURCE.slug}],
    }
    (folder / "lake.yaml").write_text(json.dumps(settings))  # JSON is also YAML


def engine_command(archive: Path, folder: Path, *days: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.programs.engine", str(folder / "lake.yaml"), *days]


def lake_tables(folder: Path) -> Tables:
    """The tables of a lake in which every partition was written once."""
    data = folder / "lake" / "segment-data" / "data" / SOURCE.id
    return _parquet_by_folder(data, "segment_type=")


def _published_tables(folder: Path) -> Tables:
    """The tables of a lake as readers see them, without files that were replaced."""
    lake = Lake.open(load_settings(folder / "lake.yaml", {}, folder))
    database, tables = lake.settings.source(SOURCE.slug).database, Tables()
    for table in lake.catalog.tables(database):
        for partition in lake.catalog.partitions(database, table.name):
            files = Path(lake.storage.full(partition.location)).glob("*.parquet")
            tables.setdefault(table.name, []).extend(sorted(files))
    return tables


def _datalake(archive: Path, folder: Path) -> list[str]:
    return [*_command(folder), "sync"]


def _command(folder: Path) -> list[str]:
    return [str(_BIN / "datalake"), "--config", str(folder / "lake.yaml")]


def replaying(contestant: Contestant, first: str, end: str) -> Contestant:
    """The engine or the command with a replay of some days instead of a sync."""

    def command(archive: Path, folder: Path) -> list[str]:
        if contestant is ENGINE:
            return engine_command(archive, folder, first, end)
        days = ["--source", SOURCE.slug, "--from", first, "--to", end]
        return [*_command(folder), "replay", *days]

    return replace(contestant, command=command, tables=_published_tables)


def _dagster_home(folder: Path) -> Mapping[str, str]:
    home = folder / "dagster"
    home.mkdir()
    (home / "dagster.yaml").symlink_to(ROOT / "dagster.yaml")
    return {"DAGSTER_HOME": str(home)}


def _peer(python: Path, module: str) -> Callable[[Path, Path], list[str]]:
    def command(archive: Path, folder: Path) -> list[str]:
        program = [str(python), "-m", f"benchmarks.programs.{module}"]
        return [*program, str(archive / RAW), str(folder / "tables")]

    return command


def _peer_tables(folder: Path) -> Tables:
    return _parquet_by_folder(folder / "tables")


def _dlt_tables(folder: Path) -> Tables:
    tables = _parquet_by_folder(folder / "tables" / "events")
    return {name: files for name, files in tables.items() if not name.startswith("_dlt")}


def _parquet_by_folder(above: Path, prefix: str = "") -> Tables:
    return {
        folder.name.removeprefix(prefix): files
        for folder in sorted(above.glob(f"{prefix}*"))
        if (files := sorted(folder.rglob("*.parquet")))
    }


ENGINE = Contestant("engine", engine_command, lake_tables, lake_folder)
COMMAND = Contestant("command", _datalake, lake_tables, lake_folder, _dagster_home)
CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        ENGINE,
        COMMAND,
        Contestant("duckdb", _peer(Path(sys.executable), "duckdb_peer"), _peer_tables),
        Contestant("pyspark", _peer(Path(sys.executable), "pyspark_peer"), _peer_tables),
        Contestant("dlt", _peer(_PEERS_BIN / "python", "dlt_peer"), _dlt_tables, has_hours=False),
    )
}


def engine_on_cluster(workers: int) -> Contestant:
    """The engine on a standalone cluster that is started for this run only."""

    def command(archive: Path, folder: Path) -> list[str]:
        program = [sys.executable, "-m", "benchmarks.programs.cluster"]
        return [*program, str(folder / "lake.yaml"), str(workers)]

    name = "1 worker" if workers == 1 else f"{workers} workers"
    return replace(ENGINE, name=name, command=command)
