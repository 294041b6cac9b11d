"""The compiled kernel of loading: small Parquet files, many of them, without a writer for each.

Of a file with some dozens of rows, a writer that is made for millions takes nearly all of its time
to get ready, column by column.
"""
