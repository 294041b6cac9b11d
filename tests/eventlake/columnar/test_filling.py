"""The compiled casts: the same as `rules/casts.py` on every text."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventlake.columnar import filling
from eventlake.columnar.filling import cast_texts
from eventlake.columnar.memory import address
from eventlake.columnar.text import PADDING
from eventlake.rules.casts import Outcome, cast, text_of
from eventlake.rules.types import LakeType
from tests.support.json_values import ANY, DATES, EXPONENTS, PLAIN_NUMBERS, TEXTS

CODES = {
    LakeType.BIGINT: filling.BIGINT,
    LakeType.DECIMAL: filling.DECIMAL,
    LakeType.TIMESTAMP: filling.TIMESTAMP,
    LakeType.BOOLEAN: filling.BOOLEAN,
}
OUTCOMES = (Outcome.EXACT, Outcome.LOSSY, Outcome.FAILED)
DECIMAL = 16


def as_compiled(texts: list[str], into: LakeType) -> list[tuple[int | bool | None, Outcome]]:
    """Cells, of decimals without their point, and outcomes."""
    encoded = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(encoded) + bytes(PADDING), np.uint8)
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    values, outcomes = np.zeros(2 * len(texts), np.int64), np.zeros(len(texts), np.int64)
    cast_texts(address(data), offsets, CODES[into], values, outcomes)
    memory, cells = values.tobytes(), []
    for n in range(len(texts)):
        cell: int | bool = int(values[n])
        if into is LakeType.DECIMAL:
            part = memory[DECIMAL * n : DECIMAL * (n + 1)]
            cell = int.from_bytes(part, "little", signed=True)
        elif into is LakeType.BOOLEAN:
            cell = bool(memory[n >> 3] >> (n & 7) & 1)
        cells.append(cell)
    found = [OUTCOMES[number] for number in outcomes.tolist()]
    return [
        (None if outcome is Outcome.FAILED else cell, outcome)
        for cell, outcome in zip(cells, found, strict=True)
    ]


def as_stated(text: str, into: LakeType) -> tuple[int | bool | None, Outcome]:
    cell, outcome = cast(text, into)
    if into is LakeType.DECIMAL and cell is not None:
        return int(f"{cell:f}".replace(".", "")), outcome
    return cell, outcome  # type: ignore[return-value]


def assert_same(texts: list[str], into: LakeType) -> None:
    wanted = [as_stated(text, into) for text in texts]
    found = as_compiled(texts, into)
    wrong = [
        (text, one, other)
        for text, one, other in zip(texts, found, wanted, strict=True)
        if one != other
    ]
    assert not wrong[:5]


@pytest.mark.parametrize("into", list(CODES))
@settings(max_examples=300)
@given(texts=st.lists(st.one_of(ANY.map(text_of), TEXTS, PLAIN_NUMBERS, EXPONENTS, DATES)))
@example(texts=["truE", "FALSE", "true ", "tru", "\u017false"])
def test_every_text_is_cast_by_the_rules(into: LakeType, texts: list[str]) -> None:
    assert_same([text for text in texts if text], into)


WHOLE = ["0", "1", "9", "10", "42", "00", "01", "", *("9" * n for n in (18, 19, 20, 31, 32, 33))]
WHOLE += [str(2**63 + n) for n in (-1, 0, 1)] + [str(10**n) for n in (18, 19, 31, 32, 37, 38)]
PART = ["", ".", ".0", ".5", ".000001", ".0000004", ".0000005", ".00000050", ".00000051"]
PART += [".0000015", ".0000025", ".999999", ".9999995", ".9999994999", ".999998500000000000001"]
PART += [".00000000000000000000000000000000000000000000000001"]
POWER = ["", "e", "e0", "E+6", "e-6", "e-7", "e7", "e25", "e31", "e32", "e33", "e-19", "e-38"]
POWER += ["e400", "e-400", "e+00018", "e99999999999999999999", "e-99999999999999999999", "e1.5"]


@pytest.mark.parametrize("into", [LakeType.BIGINT, LakeType.DECIMAL])
@pytest.mark.parametrize("around", ["{}", "-{}", "+{}", " {}", "{} ", "--{}", "{}x"])
def test_numbers_at_every_edge(into: LakeType, around: str) -> None:
    texts = [around.format("".join(parts)) for parts in product(WHOLE, PART, POWER)]
    assert_same([text for text in texts if text], into)


DAYS = ["0000-12-31", "0001-01-01", "1900-02-29", "1969-12-31", "1970-01-01", "2000-02-29"]
DAYS += ["2023-02-29", "2024-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-10-00"]
DAYS += ["9999-12-31", "2026-1-01", "20261001", "2026/10/01", "2026-10-0a", "٢٠٢٦-10-01"]
GAP, MINUTES = ["T", " ", "t", ""], ["", "00:00", "23:59", "24:00", "12:60", "7:00", "1200", "12"]
SECONDS = ["", ":00", ":59", ":60", ":5", ":"]
FRACTION = ["", ".", ".5", ".999999", ".0000001", ".1234560", ".12345670000", ",5"]
ZONE = ["", "Z", "z", "+00:00", "-00:01", "+23:59", "+24:00", "+0200", "-02", "+2", "+02:", "+02:0"]
ZONE += ["+02:60", "-2359", "Z ", "\n", "+02:000", "+020"]


@pytest.mark.parametrize("day", DAYS)
def test_dates_in_every_form(day: str) -> None:
    texts = {day + "".join(parts) for parts in product(GAP, MINUTES, SECONDS, FRACTION, ZONE)}
    assert_same(sorted(texts), LakeType.TIMESTAMP)


def test_every_day_of_four_hundred_years_and_the_ends_of_time() -> None:
    days = [
        f"{y:04}-{m:02}-{d:02}" for y in range(1999, 2002) for m in range(14) for d in range(33)
    ]
    days += [f"{y:04}-{md}" for y in range(10_000) for md in ("01-01", "02-29", "12-31")]
    assert_same(days, LakeType.TIMESTAMP)
    near = [f"{day}T{time}{zone}" for day in ("0001-01-01", "9999-12-31")
            for time in ("00:00", "23:59:59.999999", "12:00") for zone in ZONE]  # fmt: skip
    assert_same(near, LakeType.TIMESTAMP)
