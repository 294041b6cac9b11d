"""A table and its partitions, as tests of catalogs have them."""

from eventlake.catalog.base import Catalog, CatalogColumn, CatalogPartition, CatalogTable

ORDERS = CatalogTable(
    database="shop",
    name="track_order",
    columns=(CatalogColumn("message_id", "string", "/messageId"),),
    partition_keys=("day", "hr"),
    location="segment-data/data/S1/segment_type=track_order",
    comment="Order",
    parameters={"source_id": "S1"},
)
HOUR = ("2026-10-01", "07")


def at(location: str, version: int, values: tuple[str, ...] = HOUR) -> CatalogPartition:
    return CatalogPartition(values, location, version, rows=3, bytes=100, files=1)


def locations(catalog: Catalog) -> list[str]:
    return [partition.location for partition in catalog.partitions("shop", "track_order")]
