"""A statement before it runs: whether it may, and which tables it mentions."""

import difflib
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from eventlake.catalog.base import Catalog, CatalogTable
from eventlake.rules.errors import UsageError

Node = dict[str, Any]


def nodes(tree: Any) -> Iterator[Node]:
    """Every object in a tree; without recursion, as statements may be nested deeply."""
    waiting = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def is_table(node: Any) -> bool:
    """Whether this is the mention of a table, a view or the like by its name."""
    return isinstance(node, dict) and node.get("type") == "BASE_TABLE"


def common_tables(tree: Any) -> set[str]:
    """The names that the statement gives to queries of its own, with WITH."""
    maps = (node["cte_map"]["map"] for node in nodes(tree) if "cte_map" in node)
    return {entry["key"].lower() for entries in maps for entry in entries}


_EXPLAIN = re.compile(r"\A\s*EXPLAIN(?:\s+ANALYZE\b|\s*\([^)]*\))*", re.IGNORECASE)
_LISTING = re.compile(
    r"\b(SHOW|INFORMATION_SCHEMA|PG_CATALOG|DUCKDB_(TABLES|COLUMNS|VIEWS))\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A table as a statement names it, with or without its database."""

    database: str | None
    table: str
    shadowed: bool = False  # by a query of that name in the statement itself

    def __str__(self) -> str:
        return f"{self.database}.{self.table}" if self.database else self.table


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement that only reads; `tree` is how DuckDB parsed it."""

    sql: str
    tree: Node
    mentions: frozenset[Mention]

    @property
    def lists_tables(self) -> bool:
        """Whether it may ask what tables there are; too often is only slower."""
        return bool(_LISTING.search(self.sql))


def parse(connection: duckdb.DuckDBPyConnection, sql: str) -> Statement:
    """Understand a statement, or refuse it with the reason."""
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"Expected one SQL statement, found {len(statements)}.")
        query = _EXPLAIN.sub("", statements[0].query)
        # What an EXPLAIN ANALYZE explains is run, so it is held to the same rule.
        if [s.type for s in connection.extract_statements(query)] != [duckdb.StatementType.SELECT]:
            raise UsageError(
                "Only statements that read are possible here: SELECT, WITH, DESCRIBE, SUMMARIZE, "
                "SHOW, EXPLAIN. The lake changes by syncs and replays alone."
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
    """The table that is meant, or None; without its database it must be the only one so named."""
    places = databases if mention.database is None else {mention.database} & set(databases)
    found = [table for place in places if (table := catalog.table(place, mention.table))]
    if len(found) > 1 and not mention.shadowed:
        names = ", ".join(table.full_name for table in found)
        raise UsageError(
            f"Several databases have a table {mention.table!r}: {names}. Write one of these."
        )
    return found[0] if len(found) == 1 else None


def unknown_table(catalog: Catalog, databases: Collection[str], mention: Mention) -> UsageError:
    """That there is no such table, with those of nearly the same name."""
    names = [table.full_name for database in databases for table in catalog.tables(database)]
    near = difflib.get_close_matches(str(mention), names, cutoff=0.5)
    near += [n for n in names if n.partition(".")[2] == mention.table and n not in near]
    hint = f" Near it are: {', '.join(near)}." if near else ""
    return UsageError(
        f"There is no table {str(mention)!r} in the catalog.{hint} "
        "`datalake tables` lists all of them."
    )
