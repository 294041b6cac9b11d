"""DuckDB's JSON form of a statement: the few things we read from it."""

from collections.abc import Iterator
from typing import Any

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
