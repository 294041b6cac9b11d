"""What lies in a lake, and what of it is needed."""

from eventlake.rules import paths
from eventlake.runs.clean_up import state_places
from tests.support.lakes.runs import SOURCE_ID, Runs


def lying(runs: Runs) -> set[str]:
    """Data and index files."""
    places = (f"segment-data/data/{SOURCE_ID}", paths.id_indexes(SOURCE_ID))
    return {file.path for place in places for file in runs.storage.files(place)}


def needed(runs: Runs) -> set[str]:
    """Those of them that catalog and state lead to."""
    folders = {
        partition.location
        for database in runs.catalog.databases()
        for table in runs.catalog.tables(database)
        for partition in runs.catalog.partitions(database, table.name)
    }
    folders |= state_places(runs.state())
    return {path for path in lying(runs) if path in folders or path.rpartition("/")[0] in folders}
