"""What a blob of staged rows is called, and the columns that it has beside the events' own."""

FILE, LINE, ID, RECEIVED = "#file", "#line", "#id", "#received"
RESCUED, PAYLOAD, HASH = "#rescued", "#payload", "#hash"
"""Columns that accompany staged rows; field names of events always begin with a slash."""


def rows_key(table: str, partition: str) -> str:
    return f"{table}\n{partition}"


def split_key(key: str) -> tuple[str, str]:
    table, partition = key.split("\n")
    return table, partition
