"""Where everything lies below the lake's root: the one place that knows paths."""

from datetime import UTC, date, datetime, timedelta
from hashlib import sha256

OURS = ("logs", "segment-stage", "segment-data", "segment-logs", "sync_tracking_datasets")
"""The folders below the root that belong to the lake; others are never touched."""
RAW_SUFFIXES = (".gz", ".json", ".jsonl")
STATE = "segment-data/_state"
CATALOG = f"{STATE}/catalog"
_DAY_MS = 86_400_000
_APART = ","  # the parts of a name, where slashes would make folders
_SHORT = 100  # of the 255 bytes that a file's name may have


def raw_root(source_id: str) -> str:
    """The default folder of a raw archive."""
    return f"segment-logs/{source_id}"


def day_folder(day: date) -> str:
    """The archive names its folders by the day's UTC midnight in epoch milliseconds."""
    return str(int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000)


def folder_day(folder: str) -> date | None:
    """The day of an archive folder, or None for a folder that is no day."""
    if not (folder.isascii() and folder.isdigit()) or int(folder) % _DAY_MS:
        return None
    try:
        return date(1970, 1, 1) + timedelta(days=int(folder) // _DAY_MS)
    except OverflowError:
        return None


def stage(source_id: str, run_id: str) -> str:
    return f"{staged_runs(source_id)}/{run_id}"


def pipes(run_id: str) -> str:
    """What a run on a cluster tells while it goes on; gone after each run, like all staging."""
    return f"{all_pipes()}/{run_id}"


def all_pipes() -> str:
    return "segment-stage/_pipes"


def shipped_code(version: str) -> str:
    """What a cluster needs to carry out our jobs; a version is written once and never changed."""
    return f"{STATE}/code/{version}"


def table_folder(source_id: str, table: str) -> str:
    return f"segment-data/data/{source_id}/segment_type={table}"


def partition_folder(source_id: str, table: str, partition: str) -> str:
    return f"{table_folder(source_id, table)}/{partition}"


def version_folder(source_id: str, run_id: str, table: str, partition: str) -> str:
    """Where a partition goes when it is written whole: readers follow the catalog there."""
    return f"{versions(source_id)}/{run_id}/segment_type={table}/{partition}"


def unpublished_name(table: str, partition: str, name: str) -> str:
    """What a file is called as long as it waits among those of other tables and partitions."""
    apart = partition.replace("/", _APART)
    return f"segment_type={_short(table)}{_APART}{apart}{_APART}{name}"


def _short(table: str) -> str:
    """Less than a file's name may have, since there is more in it; no table has a dash itself."""
    if len(table) <= _SHORT:
        return table
    return f"{table[:_SHORT]}-{sha256(table.encode()).hexdigest()[:16]}"


def is_unpublished(path: str) -> bool:
    """Whether this is where a file waits until it is published."""
    return _APART in path.rpartition("/")[2]


def unique_path(path: str, own: str) -> str:
    """The same for a file that waits, with something in its name that others do not have."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/{own}{_APART}{name}"


def published_name(path: str) -> str:
    """What a file is called in the folder of its partition, wherever it lies until then."""
    return path.rpartition("/")[2].rpartition(_APART)[2]


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
    """Signs of those who wait for the lease."""
    return f"{source_state(source_id)}/waiting"


def waiting_run(source_id: str, run_id: str) -> str:
    return f"{waiting(source_id)}/{run_id}.json"


def open_runs(source_id: str) -> str:
    return f"{source_state(source_id)}/runs"


def open_run(source_id: str, run_id: str) -> str:
    return f"{open_runs(source_id)}/{run_id}.json"


def abandoned(source_id: str) -> str:
    """Where runs are noted that may have left files which nothing leads to."""
    return f"{source_state(source_id)}/upkeep/abandoned"


def cleaned(source_id: str) -> str:
    """How far it is cleaned up what manifests replaced."""
    return f"{source_state(source_id)}/upkeep/cleaned.json"


def suppression() -> str:
    """The lists of suppressed people."""
    return f"{STATE}/suppression"


def suppression_list(number: int) -> str:
    return f"{suppression()}/{number:010d}.parquet"


def pruned(source_id: str) -> str:
    """Up to which number manifests may be gone."""
    return f"{source_state(source_id)}/upkeep/pruned.json"


def orphans(source_id: str) -> str:
    """Files that nothing leads to, each with when that was first seen."""
    return f"{source_state(source_id)}/upkeep/orphans.json"


def upkeep_reports(source_id: str) -> str:
    return f"{source_state(source_id)}/upkeep/reports"


def upkeep_report(source_id: str, run_id: str) -> str:
    return f"{upkeep_reports(source_id)}/{run_id}.json"


def alerts(source_id: str) -> str:
    """What has been told of the source's troubles, and what has still to be."""
    return f"{source_state(source_id)}/alerts.json"


def versions(source_id: str) -> str:
    return f"segment-data/data/{source_id}/_v"


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


def tracked_runs(workspace_id: str, source_id: str) -> str:
    return f"sync_tracking_datasets/{workspace_id}/{source_id}"


def tracking(workspace_id: str, source_id: str, run_id: str) -> str:
    return f"{tracked_runs(workspace_id, source_id)}/{run_id}"


def catalog_database(database: str) -> str:
    return f"{CATALOG}/{database}"


def catalog_table(database: str, table: str) -> str:
    return f"{CATALOG}/{database}/{table}"


def catalog_table_file(database: str, table: str) -> str:
    return f"{catalog_table(database, table)}/table.json"


def catalog_months(database: str, table: str, retyped: int = 0) -> str:
    """Where the partitions of a table stand; a change of types gives them another folder."""
    folder = f"partitions-{retyped}" if retyped else "partitions"
    return f"{catalog_table(database, table)}/{folder}"


def catalog_month_file(database: str, table: str, month: str, retyped: int = 0) -> str:
    return f"{catalog_months(database, table, retyped)}/{month}.json"
