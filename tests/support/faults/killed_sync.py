"""A program: `datalake sync` through Dagster, without Spark, killed at a change of the lake.

Arguments: the source, and how the change begins; without it, the sync runs to its end.
"""

import sys
from unittest.mock import patch

from datalake_assets import component
from datalake_assets.cli import main as datalake
from eventlake import lake
from tests.support.faults.machines import KillingStorage, Kills
from tests.support.lakes.platform import InProcessEngine


def main(source: str, where: str) -> int:
    kills = Kills(where=where or None)
    with (
        patch.object(lake, "open_storage", lambda uri, *_: KillingStorage(uri, kills)),
        patch.object(component, "engine_of", lambda settings: InProcessEngine()),
    ):
        return datalake(["sync", "--source", source])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
