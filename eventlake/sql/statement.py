"""Parses a SQL statement, resolves its tables and selects the partitions it needs."""

import difflib
import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from eventlake.catalog.base import Catalog, CatalogPartition, CatalogTable
from eventlake.rules.errors import UsageError

Node = dict[str, Any]


def nodes(tree: Any) -> Iterator[Node]:
    """Every object in a tree; without recursion, because statements may be deeply nested."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def is_table(node: Any) -> bool:
    """Whether a node refers to a table or view by its name."""
    return isinstance(node, dict) and node.get("type") == "BASE_TABLE"


def common_tables(tree: Any) -> set[str]:
    """The names of the queries that the statement defines by WITH."""
    maps = (node["cte_map"]["map"] for node in nodes(tree) if "cte_map" in node)
    return {entry["key"].lower() for entries in maps for entry in entries}


_EXPLAIN = re.compile(r"\A\s*EXPLAIN(?:\s+ANALYZE\b|\s*\([^)]*\))*", re.IGNORECASE)
_LISTING = re.compile(
    r"\b(SHOW|INFORMATION_SCHEMA|PG_CATALOG|DUCKDB_(TABLES|COLUMNS|VIEWS))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A table name in a statement, with or without its database."""

    database: str | None
    table: str
    shadowed: bool = False  # by a query of the same name in the statement

    def __str__(self) -> str:
        return f"{self.database}.{self.table}" if self.database else self.table


@dataclass(frozen=True, slots=True)
class Statement:
    """A read-only statement; `tree` is the result of DuckDB's parser."""

    sql: str
    tree: Node
    mentions: frozenset[Mention]

    @property
    def lists_tables(self) -> bool:
        """Whether it may list tables; a false positive is only slower."""
        return bool(_LISTING.search(self.sql))


_NEAR = re.compile(r'syntax error at or near "(\w+)"')
_RESERVED = "FROM duckdb_keywords() WHERE keyword_category = 'reserved' AND keyword_name = ?"


def quoting(
    connection: duckdb.DuckDBPyConnection,
    refused: UsageError,
    catalog: Catalog,
    databases: Collection[str],
) -> str:
    """What to do if the parser stopped at a name of the catalog that is a keyword of SQL."""
    near = _NEAR.search(str(refused))
    name = near[1].lower() if near else ""
    if not connection.execute(_RESERVED, [name]).fetchone():
        return ""
    if name in databases or any(catalog.table(database, name) for database in databases):
        return f'\n{name!r} is a keyword of SQL: to name a table or database, write "{name}".'
    return ""


def parse(connection: duckdb.DuckDBPyConnection, sql: str) -> Statement:
    """Parse a statement; raises UsageError if it is not a single read-only statement."""
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"Expected one SQL statement, found {len(statements)}.")
        query = _EXPLAIN.sub("", statements[0].query)
        # EXPLAIN ANALYZE runs the statement, so the same rule applies to it.
        if [s.type for s in connection.extract_statements(query)] != [duckdb.StatementType.SELECT]:
            raise UsageError(
                "Only statements that read are possible here: SELECT, WITH, DESCRIBE, SUMMARIZE, "
                "SHOW, EXPLAIN. Only syncs and replays change the lake."
            )
        rows = connection.sql("SELECT json_serialize_sql(?)", params=[query]).fetchall()
    except duckdb.Error as error:
        raise UsageError(str(error)) from error
    tree = json.loads(rows[0][0])
    if tree["error"]:
        raise UsageError(f"This statement is not possible here: {tree['error_message']}")
    return Statement(sql, tree, frozenset(_mentions(tree)))


def _mentions(tree: Node) -> Iterator[Mention]:
    own = common_tables(tree)
    for node in filter(is_table, nodes(tree)):
        # Names are lower case in the lake, and in any case in SQL.
        database, table = node["schema_name"].lower(), node["table_name"].lower()
        yield Mention(database or None, table, shadowed=not database and table in own)


def resolve(catalog: Catalog, databases: Collection[str], mention: Mention) -> CatalogTable | None:
    """The table of a name, or None; without a database, the name must be unique."""
    places = databases if mention.database is None else {mention.database} & set(databases)
    found = [table for place in places if (table := catalog.table(place, mention.table))]
    if len(found) > 1 and not mention.shadowed:
        names = ", ".join(table.full_name for table in found)
        raise UsageError(
            f"Several databases have a table {mention.table!r}: {names}. Write one of these."
        )
    return found[0] if len(found) == 1 else None


def unknown_table(catalog: Catalog, databases: Collection[str], mention: Mention) -> UsageError:
    """An error for an unknown table, with similar names."""
    names = [table.full_name for database in databases for table in catalog.tables(database)]
    near = difflib.get_close_matches(str(mention), names, cutoff=0.5)
    near += [n for n in names if n.partition(".")[2] == mention.table and n not in near]
    hint = f" Near it are: {', '.join(near)}." if near else ""
    return UsageError(
        f"There is no table {str(mention)!r} in the catalog.{hint} "
        "`datalake tables` lists all of them."
    )


_CLOCK = {
    "current_date",
    "current_timestamp",
}  # parsed like columns, because they have no parentheses
_KEYS = "__keys"


def needed_partitions(
    connection: duckdb.DuckDBPyConnection,
    statement: Statement,
    table: CatalogTable,
    partitions: Sequence[CatalogPartition],
) -> list[CatalogPartition]:
    """The partitions that may have rows of the result; all of them when in doubt.

    DuckDB itself evaluates the conditions over a table of the keys, so they have the same meaning
    as in the statement. Arrow also prunes by plain comparisons, but only after listing every
    folder, not for JSON, and not for `date(day) >= …`.
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
        return list(partitions)  # running the statement raises the error
    finally:
        connection.unregister(_KEYS)
    return [partitions[place] for place in sorted(places)]


def _references(tree: Node, table: CatalogTable) -> Iterator[Node]:
    """Every SELECT from this table alone; for any other use of it, a SELECT of all rows."""
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
    """The parts of a WHERE, joined by AND, that use only partition keys."""
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
    """SQL for the row numbers, in the table of keys, of partitions that meet the conditions."""
    source = reference["from_table"]
    name = (source["alias"] or source["table_name"]).replace('"', '""')
    sql = f'SELECT place FROM {_KEYS} AS "{name}" WHERE true AND true'
    tree = json.loads(_convert(connection, "json_serialize_sql", sql))
    tree["statements"][0]["node"]["where_clause"]["children"] = conditions
    return _convert(connection, "json_deserialize_sql", json.dumps(tree))


def _convert(connection: duckdb.DuckDBPyConnection, function: str, text: str) -> str:
    return str(connection.sql(f"SELECT {function}(?)", params=[text]).fetchall()[0][0])
