"""The sensor that reloads the code location, so that new event tables become assets."""

import json
import os
import urllib.request
from collections.abc import Iterator
from typing import Any

import dagster as dg

from datalake_assets.assets.keys import NAMES, Names
from datalake_assets.instance.snapshot import Snapshot, read_snapshot, refresh_snapshot
from eventlake.lake import Lake

LOCATION = "datalake"
WEBSERVER_VARIABLE = "DATALAKE_WEBSERVER"
"""host:port of the webserver; `datalake dev` sets it."""
_DEV, _DEV_SERVER = "DAGSTER_IS_DEV_CLI", "127.0.0.1:3000"
"""`dagster dev` and `dg dev` set the variable, and have this webserver unless told otherwise."""
_SECONDS = 30
_LOCATIONS = """{ workspaceOrError { ... on Workspace { locationEntries { name locationOrLoadError {
  ... on RepositoryLocation { repositories { sensors { name } } } } } } } }"""
_RELOAD = """mutation ($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) {
  __typename } }"""


def reload_for_new_tables(
    lake: Lake, loaded: Snapshot, names: Names = NAMES
) -> dg.SensorDefinition:
    """Asks the webserver to reload the definitions if the lake has tables that they lack."""
    name = names.of("reload_for_new_tables")

    @dg.sensor(
        name=name,
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Reloads the code location after a sync has created event tables.",
    )
    def sensor() -> dg.SkipReason:
        refresh_snapshot(lake)
        new = _tables(read_snapshot(lake)) - _tables(loaded)
        if not new:
            return dg.SkipReason("Every table of the lake is an asset.")
        listed = ", ".join(sorted(new)[:5])
        in_dev = _DEV_SERVER if os.environ.get(_DEV) else None
        server = os.environ.get(WEBSERVER_VARIABLE) or in_dev
        if not server:
            return dg.SkipReason(
                f"{len(new)} new tables ({listed}): reload the code location to see them, or set "
                f"{WEBSERVER_VARIABLE} to host:port of the webserver to have it done."
            )
        try:
            reloaded = [_ask(server, _RELOAD, name=one) for one in _locations(server, name)]
        except (OSError, ValueError, LookupError) as error:
            return dg.SkipReason(f"{len(new)} new tables ({listed}), but no reload: {error}")
        if not reloaded:
            return dg.SkipReason(f"{len(new)} new tables ({listed}), but {server} does not show us")
        return dg.SkipReason(f"Reloaded for {len(new)} new tables: {listed}")

    return sensor


def _locations(server: str, sensor: str) -> Iterator[str]:
    """The code locations that have a sensor: a process does not know the name of its own."""
    for entry in _ask(server, _LOCATIONS)["workspaceOrError"]["locationEntries"]:
        repositories = (entry["locationOrLoadError"] or {}).get("repositories", ())
        if any(one["name"] == sensor for found in repositories for one in found["sensors"]):
            yield entry["name"]


def _ask(server: str, query: str, **variables: str) -> Any:
    """An answer of Dagster's GraphQL."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://{server}/graphql", body, headers)
    with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
        return json.load(answer)["data"]


def _tables(snapshot: Snapshot) -> set[str]:
    return {name for source in snapshot.sources.values() for name in source.tables}
