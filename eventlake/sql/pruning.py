"""Which partitions a statement can need, judged by what its WHERE says of their keys alone."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from eventlake.catalog.base import CatalogPartition, CatalogTable
from eventlake.sql.statement import Node, Statement, is_table, nodes

_CLOCK = {"current_date", "current_timestamp"}  # parsed like columns, as they have no brackets
_KEYS = "__keys"


def needed_partitions(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    table: CatalogTable,
    partitions: Sequence[CatalogPartition],
) -> list[CatalogPartition]:
    """The partitions that may hold rows the statement asks for; all of them when in doubt.

    DuckDB itself evaluates the conditions, over a table of the keys, so that they mean here what
    they mean there. Arrow would prune by plain comparisons, too, but only after every folder
    was listed, not for JSON, and not for `date(day) >= …`.
    """
    references = list(_references(statement.tree, table))
    conditions = [_key_conditions(reference, table) for reference in references]
    if not partitions or not references or not all(conditions):
        return list(partitions)
    values = zip(*(partition.values for partition in partitions), strict=True)
    keys = dict(zip(table.partition_keys, map(list, values), strict=True))
    connection.register(_KEYS, pa.table({"place": range(len(partitions)), **keys}))
    try:
        places: set[int] = set()
        for reference, condition in zip(references, conditions, strict=True):
            sql = _select(connection, reference, condition)
            places.update(place for (place,) in connection.sql(sql).fetchall())
    except duckdb.Error:
        return list(partitions)  # the statement itself will tell what is wrong
    finally:
        connection.unregister(_KEYS)
    return [partitions[place] for place in sorted(places)]


def _references(tree: Node, table: CatalogTable) -> Iterator[Node]:
    """Every SELECT over this table alone; for the table anywhere else, a SELECT of all of it."""
    alone: set[int] = set()
    for node in nodes(tree):
        source = node.get("from_table")
        if node.get("type") == "SELECT_NODE" and _means(source, table):
            alone.add(id(source))
            yield node
        elif _means(node, table) and id(node) not in alone:
            yield {"from_table": node, "where_clause": None}


def _means(node: Any, table: CatalogTable) -> bool:
    return (
        is_table(node)
        and node["table_name"].lower() == table.name
        and node["schema_name"].lower() in ("", table.database)
    )


def _key_conditions(reference: Node, table: CatalogTable) -> list[Node]:
    """The parts, joined by AND, of a WHERE that speak of nothing but partition keys."""
    source, where = reference["from_table"], reference["where_clause"]
    if where is None or source["sample"] or source["column_name_alias"]:
        return []
    parts = where["children"] if where["type"] == "CONJUNCTION_AND" else [where]
    name = source["alias"] or source["table_name"]
    return [part for part in parts if _only_keys(part, name.lower(), table)]


def _only_keys(part: Node, name: str, table: CatalogTable) -> bool:
    if any(node.get("class") in ("SUBQUERY", "LAMBDA") for node in nodes(part)):
        return False
    columns = {column.name for column in table.columns}
    known = {*table.partition_keys, *(_CLOCK - columns)}
    for node in nodes(part):
        if node.get("class") == "COLUMN_REF":
            *qualifiers, column = (word.lower() for word in node["column_names"])
            if column not in known or qualifiers not in ([], [name]):
                return False
    return True


def _select(connection: duckdb.DuckDBPyConnection, reference: Node, conditions: list[Node]) -> str:
    """SQL for the places, in the table of keys, of the partitions that meet the conditions."""
    source = reference["from_table"]
    name = (source["alias"] or source["table_name"]).replace('"', '""')
    sql = f'SELECT place FROM {_KEYS} AS "{name}" WHERE true AND true'
    tree = json.loads(_convert(connection, "json_serialize_sql", sql))
    tree["statements"][0]["node"]["where_clause"]["children"] = conditions
    return _convert(connection, "json_deserialize_sql", json.dumps(tree))


def _convert(connection: duckdb.DuckDBPyConnection, function: str, text: str) -> str:
    return str(connection.sql(f"SELECT {function}(?)", params=[text]).fetchall()[0][0])
