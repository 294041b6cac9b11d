"""Drift: the catalog entry against the Parquet footers against the table's schema."""

from collections.abc import Iterator, Sequence
from itertools import chain

import pyarrow as pa

from eventlake.catalog.base import CatalogTable
from eventlake.checking.rules import verdict
from eventlake.checking.view import TableView
from eventlake.load.write import type_problems
from eventlake.rules.types import TableSchema
from eventlake.runs.verify import CheckResult

_REMEDY = (
    "Somebody changed the catalog or a file by hand. `datalake recover --catalog` puts the entry "
    "back as it was published; a replay of its days writes a file anew."
)


def check_drift(view: TableView) -> CheckResult:
    problems = [*_entry_problems(view), *_file_problems(view)]
    evidence = {
        "columns": len(view.schema.columns),
        "columns_in_catalog": len(view.entry.columns) if view.entry else 0,
        "footers": sum(len(one.files) for one in view.looked_into),
    }
    return verdict(view.schema.key, "drift", problems, evidence, _REMEDY)


def _entry_problems(view: TableView) -> Iterator[str]:
    entry = view.entry
    if entry is None:
        yield "the table is not in the catalog"
        return
    yield from column_problems(entry, view.schema)
    if entry.partition_keys != view.layout.keys:
        yield f"partition keys {_list(entry.partition_keys)}, published: {_list(view.layout.keys)}"
    if entry.location != view.location:
        yield f"location {entry.location}, published: {view.location}"
    if entry.format != "parquet":
        yield f"format {entry.format}, published: parquet"


def column_problems(entry: CatalogTable, schema: TableSchema) -> Iterator[str]:
    """Where the columns of an entry are not those of the schema: missing, foreign, other types."""
    found = {column.name: column.type for column in entry.columns}
    wanted = {column.name: column.type.sql for column in schema.columns}
    for name in dict.fromkeys([*wanted, *found]):
        if name not in found:
            yield f"{name} {wanted[name]} is not in the catalog"
        elif name not in wanted:
            yield f"{name} {found[name]} is in the catalog, and in no schema of the lake"
        elif found[name] != wanted[name]:
            yield f"{name} is {found[name]} in the catalog, {wanted[name]} in the schema"
    order = [column.name for column in entry.columns if column.name in wanted]
    if moved := _out_of_order(order, list(wanted)):
        yield f"the catalog has {moved} in another place than the schema"


def _file_problems(view: TableView) -> Iterator[str]:
    for one in view.looked_into:
        for file in one.files:
            if file.columns is not None:
                wrong = type_problems(file.columns, view.schema, older=True)
                for problem in chain(wrong, _order_problems(file.columns, view.schema)):
                    yield f"{view.named(one.partition.values)}/{file.name}: {problem}"


def _order_problems(footer: pa.Schema, schema: TableSchema) -> Iterator[str]:
    known = schema.types()
    order = [name for name in footer.names if name in known]
    if moved := _out_of_order(order, list(known)):
        yield f"{moved} is in another place than in the schema"


def _out_of_order(found: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first that does not come in the order in which it should."""
    there = set(found)
    due = (name for name in wanted if name in there)
    return next((name for name, right in zip(found, due, strict=False) if name != right), None)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
