"""Thrift's compact protocol, as far as pages and footers of Parquet need it.

A field begins with a byte: how far its number is from the one before, and its type. A struct ends
with a zero.
"""

from eventlake.staging.kernel.compiled import inlined
from eventlake.staging.kernel.memory import put

INT, LONG, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
END = 0


@inlined
def put_varint(out: int, at: int, number: int) -> int:
    """Seven bits at a time, the lowest first; all bytes but the last have the highest bit set."""
    while number > 0x7F:
        put(out, at, number & 0x7F | 0x80)
        number >>= 7
        at += 1
    put(out, at, number)
    return at + 1


@inlined
def put_number(out: int, at: int, step: int, kind: int, number: int) -> int:
    """A field with a number that is not negative."""
    put(out, at, step << 4 | kind)
    return put_varint(out, at + 1, number << 1)


@inlined
def put_struct(out: int, at: int, step: int) -> int:
    """A field that is a struct: its fields follow, and an end."""
    put(out, at, step << 4 | STRUCT)
    return at + 1


@inlined
def put_list(out: int, at: int, step: int, kind: int, count: int) -> int:
    """A field that is a list: its elements follow."""
    put(out, at, step << 4 | LIST)
    if count < 15:
        put(out, at + 1, count << 4 | kind)
        return at + 2
    put(out, at + 1, 0xF0 | kind)
    return put_varint(out, at + 2, count)


@inlined
def put_element(out: int, at: int, number: int) -> int:
    """An element of a list: a number that is not negative."""
    return put_varint(out, at, number << 1)


@inlined
def put_structs(out: int, at: int, step: int, count: int) -> int:
    """A field that is a list of structs: these follow."""
    return put_list(out, at, step, STRUCT, count)


@inlined
def put_end(out: int, at: int) -> int:
    put(out, at, END)
    return at + 1
