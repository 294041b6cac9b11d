"""Manifests applied in their order, some of them again and late, leave the same in all catalogs."""

from itertools import count
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogPartition
from eventlake.catalog.glue import GlueCatalog
from eventlake.catalog.local import LocalCatalog
from eventlake.storage import LocalStorage
from tests.support.catalogs.orders import ORDERS

HOURS = [("2026-09-30", "23"), ("2026-10-01", "00"), ("2026-10-01", "01")]
COLUMNS = ["a", "b", "c"]


class Applied(msgspec.Struct, frozen=True):
    """What a manifest says of one table."""

    columns: frozenset[str] = frozenset()
    put: frozenset[int] = frozenset()  # of the hours
    dropped: frozenset[int] = frozenset()
    type: str | None = None  # of all columns, with all partitions


hours = st.frozensets(st.sampled_from(range(len(HOURS))))
manifests = st.lists(
    st.builds(
        Applied,
        columns=st.frozensets(st.sampled_from(COLUMNS)),
        put=hours,
        dropped=hours,
        type=st.none() | st.sampled_from(["bigint", "string"]),
    ),
    min_size=1,
    max_size=4,
)
_names = count()


def apply(catalog: Catalog, name: str, number: int, told: Applied) -> None:
    """As publication does it: columns, then the partitions, then those that are gone."""
    columns = [CatalogColumn(column, "string") for column in sorted(told.columns)]
    catalog.append_columns("shop", name, columns)
    put = [
        CatalogPartition(HOURS[hour], f"{number}/{hour}", number, number, number, 1)
        for hour in sorted(told.put - told.dropped)
    ]
    if told.type:
        catalog.retype("shop", name, dict.fromkeys(COLUMNS, told.type), put, number)
    else:
        catalog.put_partitions("shop", name, put)
    if told.dropped:
        catalog.drop_partitions("shop", name, [HOURS[hour] for hour in told.dropped], number)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(manifests, st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=3))
def test_late_repeats_leave_what_the_manifests_in_order_leave(
    tmp_path: Path,
    glue_catalog: GlueCatalog,
    told: list[Applied],
    repeats: list[tuple[int, int]],
) -> None:
    name = f"track_{next(_names)}"
    local = LocalCatalog(LocalStorage(str(tmp_path)))
    again = {after: {n for a, n in repeats if a == after and n < a} for after, _ in repeats}
    for catalog, late in ((local, False), (glue_catalog, True)):
        catalog.ensure_database("shop")
        catalog.create_table(msgspec.structs.replace(ORDERS, name=name))
        for number, manifest in enumerate(told, start=1):
            apply(catalog, name, number, manifest)
            for earlier in sorted(again.get(number - 1, ())) if late else ():
                apply(catalog, name, earlier + 1, told[earlier])
    assert glue_catalog.table("shop", name) == local.table("shop", name)
    assert glue_catalog.partitions("shop", name) == local.partitions("shop", name)
