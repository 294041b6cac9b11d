"""SQL over the lake, by DuckDB: the tables and files are those of the catalog, never a glob."""

from eventlake.sql.engine import Hidden, LakeSql, SqlLimits

__all__ = ["Hidden", "LakeSql", "SqlLimits"]
