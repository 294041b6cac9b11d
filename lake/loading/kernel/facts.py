"""What became of a column in a file, as a line of numbers for each."""

CODEC, NULLS, ENTRIES = 0, 1, 2
LOWEST, HIGHEST = 3, 4
"""Where these values lie, -1 if there is none."""
DICTIONARY, DATA = 5, 8
"""A page: its size before it was packed, its address, its size; in three places."""
DICTIONARY_AT, DATA_AT = 11, 12
"""Where the pages begin in the file."""
UNPACKED, PACKED = 13, 14
"""Bytes of all pages with their headers, before and after these were packed."""
FACTS = 15
