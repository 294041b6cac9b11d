"""Exact decimal numbers of any length: no float, no rounding context, no huge powers.

A text spells a number if it is one by JSON's grammar, with nothing around it: `12`, `-0.50`, `1e3`;
not `007`, `+5`, `.5`, `1,000` or ` 12 `, which may have another meaning.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

BIGINT_MIN, BIGINT_MAX = -(2**63), 2**63 - 1
DECIMAL_PLACES = 6
DECIMAL_INTEGER_DIGITS = 32

_BIGINT_DIGITS = len(str(BIGINT_MAX))
_DECIMAL_END = 10 ** (DECIMAL_INTEGER_DIGITS + DECIMAL_PLACES)
_FORM = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?")
# Beyond the length of any line: the exact value no longer matters.
_ENDLESS = 10**12


@dataclass(frozen=True, slots=True)
class Number:
    """`digits` times ten to the `exponent`, without leading or trailing zeros; 0 has no digits."""

    negative: bool
    digits: str
    exponent: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a number; None if the text is not a number."""
        match = _FORM.fullmatch(text)
        if match is None:
            return None
        sign, integer, fraction, power_sign, power = match.groups(default="")
        significant = (integer + fraction).lstrip("0")
        digits = significant.rstrip("0")
        if not digits:
            return cls(negative=False, digits="", exponent=0)
        shift = _power(power) if power_sign != "-" else -_power(power)
        exponent = shift - len(fraction) + len(significant) - len(digits)
        return cls(sign == "-", digits, exponent)

    @property
    def integer_digits(self) -> int:
        """The number of digits before the decimal point."""
        return max(0, len(self.digits) + self.exponent)

    def to_bigint(self) -> tuple[int, bool] | None:
        """The number truncated toward zero, and whether that is exact; None beyond 64 bits."""
        if self.integer_digits > _BIGINT_DIGITS:
            return None
        whole = int(self._first_digits(self.integer_digits))
        value = -whole if self.negative else whole
        return (value, self.exponent >= 0) if BIGINT_MIN <= value <= BIGINT_MAX else None

    def to_decimal(self) -> tuple[Decimal, bool] | None:
        """The number half-even at six places, and whether that is exact; None if too large."""
        if self.integer_digits > DECIMAL_INTEGER_DIGITS:
            return None
        kept = len(self.digits) + self.exponent + DECIMAL_PLACES
        scaled = int(self._first_digits(kept))
        cut = self.digits[kept:] if kept >= 0 else "0"
        # There are no trailing zeros: "5" is exactly a half, and "51" is more.
        if cut > "5" or (cut == "5" and scaled % 2):
            scaled += 1
        if scaled >= _DECIMAL_END:
            return None
        sign = int(self.negative and scaled > 0)
        exact = Decimal((sign, tuple(map(int, str(scaled))), -DECIMAL_PLACES))
        return exact, not cut

    def _first_digits(self, count: int) -> str:
        return self.digits[: max(0, count)].ljust(count, "0") or "0"


def _power(digits: str) -> int:
    digits = digits.lstrip("0")
    return min(int(digits or "0"), _ENDLESS) if len(digits) < 16 else _ENDLESS
