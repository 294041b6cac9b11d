"""Memory by address: reads, writes and copies bytes without bounds checks.

Passing an array counts a reference, and indexing supports negative positions; for kernels that
read every byte, both cost more than the work itself. Callers check positions, and keep the array
that owns the memory.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_copy: Any = cgutils.raw_memcpy
_intrinsic: Callable[[Callable[..., Any]], Callable[..., Any]] = intrinsic


def address(array: np.ndarray) -> int:
    """The address of the memory of an array."""
    # Not `ctypes`, which takes ten times as long.
    return int(array.__array_interface__["data"][0])


def _pointer(context: Any, builder: Any, kinds: Any, arguments: Any, bits: int) -> Any:
    base, place = arguments
    base = context.cast(builder, base, kinds[0], types.intp)
    place = context.cast(builder, place, kinds[1], types.intp)
    return builder.inttoptr(builder.add(base, place), ir.IntType(bits).as_pointer())


@_intrinsic
def byte(typing_context: Any, base: Any, place: Any) -> Any:
    """One byte."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args, arguments, 8), align=1)

    return types.uint8(base, place), generate


@_intrinsic
def eight(typing_context: Any, base: Any, place: Any) -> Any:
    """Eight bytes as a little-endian number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args, arguments, 64), align=1)

    return types.uint64(base, place), generate


@_intrinsic
def four(typing_context: Any, base: Any, place: Any) -> Any:
    """Four bytes as a little-endian number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        number = builder.load(_pointer(context, builder, signature.args, arguments, 32), align=1)
        return builder.zext(number, ir.IntType(64))

    return types.int64(base, place), generate


def _storing(kind: Any) -> Callable[..., Any]:
    """What writes a number of some bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[:2], arguments[:2], kind.bitwidth)
        value = context.cast(builder, arguments[2], signature.args[2], kind)
        builder.store(value, pointer, align=1)
        return context.get_dummy_value()

    return generate


@_intrinsic
def put(typing_context: Any, base: Any, place: Any, value: Any) -> Any:
    """Write one byte."""
    return types.void(base, place, value), _storing(types.uint8)


@_intrinsic
def put_four(typing_context: Any, base: Any, place: Any, value: Any) -> Any:
    """Write the lowest four bytes of a number."""
    return types.void(base, place, value), _storing(types.uint32)


@_intrinsic
def put_eight(typing_context: Any, base: Any, place: Any, value: Any) -> Any:
    """Write a number of eight bytes."""
    return types.void(base, place, value), _storing(types.uint64)


@_intrinsic
def copy(typing_context: Any, to: Any, place: Any, source: Any, start: Any, length: Any) -> Any:
    """Copy bytes from one memory to another."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        target = _pointer(context, builder, kinds[:2], arguments[:2], 8)
        origin = _pointer(context, builder, kinds[2:4], arguments[2:4], 8)
        size = context.cast(builder, arguments[4], kinds[4], types.intp)
        _copy(builder, target, origin, size, 1)
        return context.get_dummy_value()

    return types.void(to, place, source, start, length), generate


@_intrinsic
def ones(typing_context: Any, word: Any) -> Any:
    """The number of set bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@_intrinsic
def first_one(typing_context: Any, word: Any) -> Any:
    """The number of the lowest bit that is set; 64 if there is none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@_intrinsic
def reversed_bytes(typing_context: Any, word: Any) -> Any:
    """The number with reversed bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), generate
