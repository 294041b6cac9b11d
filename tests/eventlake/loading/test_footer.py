from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.columnar.parquet.data_file import Footer, Footers


class Seen:
    """Says which columns it was shown, and remembers how often it was asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, columns: pa.Schema) -> tuple[str, ...]:
        self.times += 1
        return tuple(columns.names)


def file(*columns: str, rows: int) -> bytes:
    out = BytesIO()
    pq.write_table(pa.table({name: pa.array(["x"] * rows, pa.string()) for name in columns}), out)
    return out.getvalue()


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 8191, 8192, 100_000])
def test_files_of_the_same_columns_are_looked_into_once(rows: int) -> None:
    seen = Seen()
    footers = Footers(seen)
    for _ in range(3):
        assert footers.read(file("a", "b", rows=rows), rows) == Footer(rows, ("a", "b"))
    assert footers.read(file("a", "b", rows=7), 7) == Footer(7, ("a", "b"))
    assert seen.times == 1


def test_what_is_not_as_expected_is_told_as_it_is() -> None:
    footers = Footers(Seen())
    assert footers.read(file("a", rows=5), 5) == Footer(5, ("a",))
    assert footers.read(file("a", rows=4), 5) == Footer(4, ("a",))
    assert footers.read(file("b", rows=5), 5) == Footer(5, ("b",))
    assert footers.read(file("a", "b", rows=5), 5) == Footer(5, ("a", "b"))
    assert footers.read(file("a", rows=5), 5) == Footer(5, ("a",))


def test_of_a_file_only_the_end_is_needed() -> None:
    whole = file("a", rows=10_000)
    size = int.from_bytes(whole[-8:-4], "little")
    assert Footers(Seen()).read(whole[-size - 8 :], 10_000) == Footer(10_000, ("a",))
    assert Footers(Seen()).read(whole[-size - 7 :], 10_000) is None


def test_what_is_no_file_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        Footers(Seen()).read(b"PAR1" + bytes(100) + b"PAR0", 5)
