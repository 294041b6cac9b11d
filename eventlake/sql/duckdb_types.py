"""Arrow's types, as DuckDB writes them."""

import pyarrow as pa


def duckdb_type(kind: pa.DataType) -> str:
    """The type of a column in DuckDB's SQL."""
    if pa.types.is_list(kind):
        return f"{duckdb_type(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({duckdb_type(kind.key_type)}, {duckdb_type(kind.item_type)})"
    if pa.types.is_struct(kind):
        fields = (f'"{field.name}" {duckdb_type(field.type)}' for field in kind)
        return f"STRUCT({', '.join(fields)})"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    return _PLAIN[kind]


_PLAIN: dict[pa.DataType, str] = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.binary(): "BLOB",
    pa.timestamp("us", tz="UTC"): "TIMESTAMP WITH TIME ZONE",
}
