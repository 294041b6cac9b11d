"""Where a row lies in the raw archive, as one number: its file (by number in the unit) and line."""

import numpy as np


def place(file: int, line: int) -> int:
    return file << 32 | line


def places(files: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """The places of many rows."""
    return (files.astype(np.uint64) << np.uint64(32)) | lines.astype(np.uint64)


def split_places(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Files and lines of places: the way back."""
    return (rows >> np.uint64(32)).astype(np.int64), (rows & np.uint64(2**32 - 1)).astype(np.int64)


def heads(*keys: np.ndarray) -> np.ndarray:
    """The rows that differ in a key from the row before them, the first of all included.

    Rows that are alike mostly come together: it takes no sorting to have few left of them.
    """
    differ = np.ones(len(keys[0]), np.bool_)
    differ[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(differ)
