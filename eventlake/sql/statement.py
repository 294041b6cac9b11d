"""A statement before it runs: whether it may, and which tables it mentions."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb

from eventlake.rules.errors import UsageError
from eventlake.sql.tree import Node, common_tables, is_table, nodes

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
