"""The compiled kernel of loading: Parquet files, many of them, without a writer for each.

Of a file with some hundreds of rows, a writer that is made for millions takes most of its time to
get ready, column by column; and one that takes only Arrow's arrays has to be given a place for each
of the rows, though few may have a value.
"""
