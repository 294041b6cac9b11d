"""What lies beside a run's records: which run they are of, and how far it is."""

from datetime import datetime

import msgspec

from eventlake.rules import paths
from eventlake.rules.errors import StateError
from eventlake.rules.names import STANDARD_COLUMNS
from eventlake.state.report import RunFacts
from eventlake.storage import Storage

_OBJECTS = ("context", "integrations", "properties", "traits", "_metadata")
PAYLOAD_SCHEMA = {
    **{column.field: "string" for column in STANDARD_COLUMNS},
    **dict.fromkeys(_OBJECTS, "object"),
}
"""Top-level fields of an event and their JSON types."""


class LogMetadata(msgspec.Struct, frozen=True):
    """What readers of a log need to know of its run."""

    operation: str
    started_at: datetime
    state: str

    @property
    def kind(self) -> str:
        return "replay" if self.operation == "mirror" else "sync"


def write_metadata(storage: Storage, run: RunFacts, state: str) -> None:
    """Say that a run is `running`, `finished` or `failed`."""
    content = {
        "organization_id": run.workspace_id,
        "workspace_id": run.workspace_id,
        "sync_configuration_id": run.source_id,
        "sync_run_id": run.run_id,
        "source_type": "event_archive",
        "source_id": run.source_id,
        "destination_type": "data_lake",
        "destination_id": run.database,
        "operation": "mirror" if run.replay else "append",
        "started_at": run.start_time,
        "state": state,
        "record_payload_schema": PAYLOAD_SCHEMA,
    }
    folder = paths.tracking(run.workspace_id, run.source_id, run.run_id)
    storage.write(f"{folder}/metadata.json", msgspec.json.format(msgspec.json.encode(content)))


def read_metadata(storage: Storage, folder: str) -> LogMetadata | None:
    """What a run's log says of the run; None where there is no such log."""
    path = f"{folder}/metadata.json"
    data = storage.read(path)
    try:
        return None if data is None else msgspec.json.decode(data, type=LogMetadata)
    except msgspec.MsgspecError as error:
        raise StateError(
            f"{path} does not describe a run ({error}). It was damaged or edited; restore the "
            "file from a backup, or remove the folder."
        ) from None
