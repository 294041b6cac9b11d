"""A program: `datalake sync`, through Dagster, in a process that is killed at a change of the lake.

Arguments: the source, and the number of the change, or how it begins. Settings and Dagster's home
are those of the environment. Spark is left out; all else is as a user would have it.
"""

import sys
from unittest.mock import patch

from datalake_assets import definitions
from datalake_assets.cli import main as datalake
from eventlake import lake
from tests.support.faults.machines import KillingStorage, Kills
from tests.support.lakes.platform import InProcessEngine


def main(source: str, where: str) -> int:
    kills = Kills(at=int(where)) if where.isdecimal() else Kills(where=where or None)
    with (
        patch.object(lake, "open_storage", lambda uri, access: KillingStorage(uri, kills)),
        patch.object(definitions, "engine_of", lambda settings: InProcessEngine()),
    ):
        ended = datalake(["sync", "--source", source])
    print("\n".join(kills.log))
    return ended


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
