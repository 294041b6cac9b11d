"""What each task of a loading pass is told."""

import numpy as np

from eventlake.load.blobs import rows_key
from eventlake.load.write import LoadJob
from eventlake.rules.names import Naming
from eventlake.rules.types import TableSchema
from eventlake.storage import LocalStorage


def test_a_task_is_told_of_its_own_tables() -> None:
    tables = ("page", "page_view", "order")
    keys = [rows_key(table, f"hr={hour}") for table in tables for hour in range(2)]
    job = LoadJob(
        storage=LocalStorage("lake"),
        schemas={table: TableSchema(table, "shop", table, table, ()) for table in tables},
        targets={key: f"to {key}" for key in keys},
        locations={key: f"in {key}" for key in keys},
        duplicates=np.array([7]),
        raw_files=("a", "b"),
        naming=Naming.NATIVE,
        log_folder="log",
        operation="sync",
        shadows={keys[0]: "shadow"},
    )
    shared, told = job.dealt_out([{"page", "order"}, {"page_view", "order"}])
    assert (shared.schemas, shared.targets, shared.locations, shared.shadows) == ({}, {}, {}, {})
    one, two = map(shared.told, told)
    assert [list(dealt.schemas) for dealt in (one, two)] == [
        ["page", "order"],
        ["page_view", "order"],
    ]
    for dealt, own in ((one, keys[:2] + keys[4:]), (two, keys[2:])):
        assert dealt.targets == {key: f"to {key}" for key in own}
        assert dealt.locations == {key: f"in {key}" for key in own}
        assert (dealt.raw_files, dealt.duplicates.tolist()) == (("a", "b"), [7])
    assert (one.shadows, two.shadows) == ({keys[0]: "shadow"}, {})
