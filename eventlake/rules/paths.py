"""Paths of all files of the lake, relative to its root."""

import re
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256

LOGS = "logs"  # of clusters
TRACKED = "sync_tracking_datasets"
OURS = ("logs", "segment-stage", "segment-data", "segment-logs", TRACKED)
"""The folders of the lake below the root; others are never modified."""
RAW_SUFFIXES = (".gz", ".json", ".jsonl")
STATE = "segment-data/_state"
CATALOG = f"{STATE}/catalog"
_DAY_MS = 86_400_000
_SEPARATOR = ","  # separates the parts of a file name
_MAX_TABLE = 100  # file names have at most 255 bytes


def raw_root(source_id: str) -> str:
    """The default folder of a raw archive."""
    return f"segment-logs/{source_id}"


def day_folder(day: date) -> str:
    """The name of a day folder in the archive: UTC midnight in epoch milliseconds."""
    return str(int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000)


def folder_day(folder: str) -> date | None:
    """The day of an archive folder, or None if it is not a day folder."""
    if not (folder.isascii() and folder.isdigit()) or int(folder) % _DAY_MS:
        return None
    try:
        return date(1970, 1, 1) + timedelta(days=int(folder) // _DAY_MS)
    except OverflowError:
        return None


def stage(source_id: str, run_id: str) -> str:
    return f"{staged_runs(source_id)}/{run_id}"


def pipes(run_id: str) -> str:
    """Messages of a run on a cluster; deleted after the run, like all staging files."""
    return f"{all_pipes()}/{run_id}"


def all_pipes() -> str:
    return "segment-stage/_pipes"


def shipped_code(version: str) -> str:
    """Code and packages for clusters; a version is immutable."""
    return f"{STATE}/code/{version}"


def table_folder(source_id: str, table: str) -> str:
    return f"segment-data/data/{source_id}/segment_type={table}"


def partition_folder(source_id: str, table: str, partition: str) -> str:
    return f"{table_folder(source_id, table)}/{partition}"


def version_folder(source_id: str, run_id: str, table: str, partition: str) -> str:
    """The folder of a rewritten partition; the catalog points to it."""
    return f"{versions(source_id)}/{run_id}/segment_type={table}/{partition}"


def unpublished_name(table: str, partition: str, name: str) -> str:
    """The name of a file in staging, among files of other tables and partitions."""
    parts = partition.replace("/", _SEPARATOR)
    return f"segment_type={_short(table)}{_SEPARATOR}{parts}{_SEPARATOR}{name}"


def _short(table: str) -> str:
    """Shorten a table name to leave space for the rest; table names contain no dash."""
    if len(table) <= _MAX_TABLE:
        return table
    return f"{table[:_MAX_TABLE]}-{sha256(table.encode()).hexdigest()[:16]}"


def is_unpublished(path: str) -> bool:
    """Whether this is the path of a file that is not published yet."""
    return _SEPARATOR in path.rpartition("/")[2]


def unique_path(path: str, unique: str) -> str:
    """The path of an unpublished file with a unique name added."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{unique}{_SEPARATOR}{name}"


def published_name(path: str) -> str:
    """The name of a file in its partition folder, also before publication."""
    return path.rpartition("/")[2].rpartition(_SEPARATOR)[2]


def reports_root() -> str:
    return "segment-data/reports"


def reports_folder(source_id: str, day: str) -> str:
    return f"{reports_root()}/day={day}/source={source_id}"


def report(source_id: str, day: str, run_id: str) -> str:
    return f"{reports_folder(source_id, day)}/run_id={run_id}/report.json"


def source_state(source_id: str) -> str:
    return f"{STATE}/sources/{source_id}"


def state_file(source_id: str) -> str:
    return f"{source_state(source_id)}/state.json"


def manifests(source_id: str) -> str:
    return f"{source_state(source_id)}/manifests"


def manifest(source_id: str, number: int) -> str:
    return f"{manifests(source_id)}/{number:010d}.json"


def lease(source_id: str) -> str:
    return f"{source_state(source_id)}/lease.json"


def waiting(source_id: str) -> str:
    """Marker files of runs that wait for the lease."""
    return f"{source_state(source_id)}/waiting"


def waiting_run(source_id: str, run_id: str) -> str:
    return f"{waiting(source_id)}/{run_id}.json"


def open_runs(source_id: str) -> str:
    return f"{source_state(source_id)}/runs"


def open_run(source_id: str, run_id: str) -> str:
    return f"{open_runs(source_id)}/{run_id}.json"


def abandoned(source_id: str) -> str:
    """Notes of runs that may have left unreferenced files."""
    return f"{source_state(source_id)}/upkeep/abandoned"


def cleaned(source_id: str) -> str:
    """The manifest number up to which replaced files are deleted."""
    return f"{source_state(source_id)}/upkeep/cleaned.json"


def suppression() -> str:
    """The suppression lists."""
    return f"{STATE}/suppression"


def suppression_list(number: int) -> str:
    return f"{suppression()}/{number:010d}.parquet"


def pruned(source_id: str) -> str:
    """The manifest number up to which manifests may be deleted."""
    return f"{source_state(source_id)}/upkeep/pruned.json"


def orphans(source_id: str) -> str:
    """Unreferenced files, each with the time of its first detection."""
    return f"{source_state(source_id)}/upkeep/orphans.json"


def upkeep_reports(source_id: str) -> str:
    return f"{source_state(source_id)}/upkeep/reports"


def upkeep_report(source_id: str, run_id: str) -> str:
    return f"{upkeep_reports(source_id)}/{run_id}.json"


def alerts(source_id: str) -> str:
    """Sent and pending alerts of a source."""
    return f"{source_state(source_id)}/alerts.json"


def versions(source_id: str) -> str:
    """Rewritten partitions, on their way to their own folders."""
    return f"segment-data/data/{source_id}/versions"


def version_roots(source_id: str) -> list[str]:
    """The same, and its name in earlier releases."""
    return [versions(source_id), f"segment-data/data/{source_id}/_v"]


def is_version_folder(folder: str) -> bool:
    return folder.split("/")[3:4] in (["versions"], ["_v"])


_RUN_ID = re.compile(r"\d{19}|R\d+", re.ASCII)


def is_run_id(name: str) -> bool:
    """Whether a folder is called as our runs are: nanoseconds since 1970 (tests use R1, R2)."""
    return _RUN_ID.fullmatch(name) is not None


_OWN_FILE = re.compile(rf"({_RUN_ID.pattern})-\d+-\d+\.parquet", re.ASCII)


def is_own_file(name: str) -> bool:
    """Whether a data file is called as ours are: `<run>-<unit>-<part>.parquet`."""
    return _OWN_FILE.fullmatch(name) is not None


_LOG_FILE = re.compile(r"metadata\.json|records_[a-z]+\.\d+\.parquet", re.ASCII)


def is_removable(path: str) -> bool:
    """Whether a file in a folder that is to be removed is ours, by its name."""
    name = path.rpartition("/")[2]
    if path.startswith(f"{TRACKED}/"):
        return _LOG_FILE.fullmatch(name) is not None
    return "segment_type=" not in path or is_own_file(name)


def staged_runs(source_id: str) -> str:
    return f"segment-stage/{source_id}"


def first_seen(source_id: str) -> str:
    return f"{source_state(source_id)}/first_seen.json"


def ledger_pages(source_id: str) -> str:
    return f"{source_state(source_id)}/ledger"


def ledger(source_id: str, folder: str) -> str:
    return f"{ledger_pages(source_id)}/{folder}.json"


def id_indexes(source_id: str) -> str:
    return f"{source_state(source_id)}/ids"


def listed_records() -> str:
    """The lists of the files of record logs: the table of records reads them."""
    return "segment-data/sync_records"


def listed_run(source_id: str, day: str, run_id: str) -> str:
    return f"{listed_records()}/source_id={source_id}/day={day}/run_id={run_id}"


def tracked_runs(workspace_id: str, source_id: str) -> str:
    return f"{TRACKED}/{workspace_id}/{source_id}"


def tracking(workspace_id: str, source_id: str, run_id: str) -> str:
    return f"{tracked_runs(workspace_id, source_id)}/{run_id}"


def catalog_database(database: str) -> str:
    return f"{CATALOG}/{database}"


def catalog_table(database: str, table: str) -> str:
    return f"{CATALOG}/{database}/{table}"


def catalog_table_file(database: str, table: str) -> str:
    return f"{catalog_table(database, table)}/table.json"


def catalog_months(database: str, table: str, retyped: int = 0) -> str:
    """The partition files of a table; changed column types start a new folder."""
    folder = f"partitions-{retyped}" if retyped else "partitions"
    return f"{catalog_table(database, table)}/{folder}"
