"""What becomes of a file before it is written: a line of numbers for each column and page."""

CODEC, NULLS, LOWEST, HIGHEST, ENTRIES, FIRST_PAGE, PAGES, BEGIN, DATA, UNPACKED, PACKED = range(11)
"""Of a column: its codec, the number of its nulls, where its lowest and highest values lie (-1 if
there is none), entries of its dictionary (0 if it has none), its pages by line and number, where
they and those of data begin in the file, and their bytes before and after they were packed."""
COLUMN_FACTS = 11

IS_PACKED, IS_DICTIONARY, COUNT, SIZE, PACKED_AT, PACKED_SIZE = range(6)
"""Of a page: whether it is packed yet, whether it is the dictionary itself, how many values it has,
its size before, where it lies, and its size there."""
PAGE_FACTS = 6
