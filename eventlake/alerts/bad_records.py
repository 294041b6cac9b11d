"""The first bad record of a run: what a person has to see to know what went wrong.

Nothing of suppressed people is shown, also if they were suppressed only after the run.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from eventlake.alerts.attempt import BadRecord
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.runs.report_history import RunReport
from eventlake.settings.models.models import Source

if TYPE_CHECKING:
    from eventlake.rules.suppression import People

_CONTENT = 400  # characters that are shown of a record
_FILES = 20  # of a table that are searched for a rescued value
_RECORDS = 1_000  # of a log that are searched for one that may be shown


def first_rejected(lake: Lake, source: Source, run_id: str) -> BadRecord | None:
    """From the record log, if it is still there."""
    from eventlake.load.record_log import BatchType
    from eventlake.records.logs import first, read, run_log

    try:
        people = _suppressed(lake, source)
        files = run_log(lake, [source], run_id).of({BatchType.REJECTED, BatchType.NULL})
        for records in first(read(lake.storage, files), _RECORDS):
            for record in records.to_pylist():
                payload = (record["record_payload"] or "").encode()
                if people is None or not people.are_named_in(payload):
                    return _rejected(source, record)
    except (LakeError, OSError):
        return None  # the message does without it
    return None


def _rejected(source: Source, record: dict[str, Any]) -> BadRecord:
    place, identifier = f"{record['raw_file']}:{record['raw_line']}", record["identifier"]
    return BadRecord(
        place,
        record["status_message"] or "rejected",
        "" if identifier == place else identifier,
        _content(source, record["record_payload"]),
    )


def first_rescued(lake: Lake, source: Source, report: RunReport) -> BadRecord | None:
    """From the table of which most was rescued."""
    tables = [line for line in report.tables if line.get("rescued_cells")]
    if not tables:
        return None
    worst = max(tables, key=lambda line: (line["rescued_cells"], line["table_name"]))
    name, database = worst["table_name"], worst["database"]
    try:
        people = _suppressed(lake, source)
        for row in _rescued_rows(lake, worst, report.run_id):
            person = {"userId": row["user_id"], "anonymousId": row["anonymous_id"]}
            if people is None or not people.has(person):
                return BadRecord(
                    f"{database}.{name}",
                    f"{worst['rescued_cells']:,} cells of this table went to rescued_data",
                    row["message_id"] or "",
                    _content(source, row["rescued_data"]),
                )
    except (LakeError, OSError):
        return None
    return None


def _rescued_rows(lake: Lake, line: dict[str, Any], run_id: str) -> Iterator[dict[str, Any]]:
    """Rows with rescued values in the files that a run wrote; else in those beside them."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    touched = {tuple(partition.values()) for partition in line.get("partitions", ())}
    found = lake.catalog.partitions(line["database"], line["table_name"])
    files = [
        file.path
        for partition in found
        if partition.values in touched
        for file in lake.storage.files(partition.location)
    ]
    columns = ["message_id", "user_id", "anonymous_id", "rescued_data"]
    for path in sorted(files, key=lambda path: run_id not in path)[:_FILES]:
        with lake.storage.open_input(path) as stream:
            parquet = pq.ParquetFile(stream)
            if "rescued_data" not in parquet.schema_arrow.names:
                continue
            rows = parquet.read(columns)
        yield from rows.filter(pc.is_valid(rows["rescued_data"]))[:_RECORDS].to_pylist()


def _content(source: Source, text: str | None) -> str:
    if not text or not source.alerts.show_record:
        return ""
    return text if len(text) <= _CONTENT else f"{text[:_CONTENT]} …"


def _suppressed(lake: Lake, source: Source) -> "People | None":
    """Whoever is suppressed by now."""
    from eventlake.state.suppression import Suppression

    found = Suppression.of(lake.storage, source)
    return found.people(lake.storage) if found else None
