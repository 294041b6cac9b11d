"""The sensor that reloads the code location, so that new event tables become assets."""

import os

import dagster as dg
from dagster_graphql import DagsterGraphQLClient, DagsterGraphQLClientError

from datalake_assets.instance.snapshot import Snapshot, read_snapshot, refresh_snapshot
from eventlake.lake import Lake

LOCATION = "datalake"
WEBSERVER_VARIABLE = "DATALAKE_WEBSERVER"
"""host:port of the webserver; `datalake dev` sets it."""


def reload_for_new_tables(lake: Lake, loaded: Snapshot) -> dg.SensorDefinition:
    """Asks the webserver to reload the definitions if the lake has tables that they lack."""

    @dg.sensor(
        name="reload_for_new_tables",
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reloads the code location after a sync has created event tables.",
    )
    def sensor() -> dg.SkipReason:
        refresh_snapshot(lake)
        new = _tables(read_snapshot(lake)) - _tables(loaded)
        if not new:
            return dg.SkipReason("Every table of the lake is an asset.")
        names = ", ".join(sorted(new)[:5])
        server = os.environ.get(WEBSERVER_VARIABLE)
        if not server:
            return dg.SkipReason(
                f"{len(new)} new tables ({names}): reload the code location to see them, or set "
                f"{WEBSERVER_VARIABLE} to host:port of the webserver to have it done."
            )
        host, port = server.rsplit(":", 1)
        try:
            DagsterGraphQLClient(host, port_number=int(port)).reload_repository_location(LOCATION)
        except DagsterGraphQLClientError as error:
            return dg.SkipReason(f"{len(new)} new tables ({names}), but no reload: {error}")
        return dg.SkipReason(f"Reloaded for {len(new)} new tables: {names}")

    return sensor


def _tables(snapshot: Snapshot) -> set[str]:
    return {name for source in snapshot.sources.values() for name in source.tables}
