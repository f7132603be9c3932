"""Amounts of extended resources, read as the API server reads a resource.Quantity.

Source: k8s.io/apimachinery/pkg/api/resource (syntax, rounding up to nano, largest value 2^63-1) and
ValidateResourceQuantityValue in pkg/apis/core/validation (extended resources: not negative, whole in thousandths).
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

_SYNTAX = re.compile(r"(?P<number>[+-]?\d*\.?\d*)(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?", re.ASCII)
_SCALES: dict[str, Fraction] = {
    "": Fraction(1),
    **{
        suffix: Fraction(1000) ** power
        for suffix, power in zip("numkMGTPE", (-3, -2, -1, 1, 2, 3, 4, 5, 6), strict=True)
    },
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}
_LARGEST = 2**63 - 1
_SURELY_SMALL = 18
"""Digits of a whole number that cannot be above the largest value."""
_LONGEST = 256
"""Characters of a text that can still be an amount: Python refuses to read thousands of digits."""
_WITHOUT_DIGITS = re.compile(r"[+-]?\.?(?:[numkMGTPE]|[KMGT]i|[eE](?:\+?\d+|-0*[0-9]))?", re.ASCII)
"""Texts without a digit before the suffix, which the API server's fast path reads as zero; its exact path (Pi, Ei, more
than nine decimals) refuses them."""
_LONGEST_EXPONENT = 4
"""Digits of an exponent that can still matter; 1e99999999 would take the memory of the machine."""


class AmountError(ValueError):
    """The amount is not one that the API server takes for an extended resource; the text says why."""


def parse_quantity(value: object) -> Fraction:
    """Return the exact value of a quantity as it stands in a manifest: a number or a text.

    `null` is zero and blanks around a text do not count, as in the API's JSON decoder (Quantity.UnmarshalJSON). Raises
    AmountError for what does not parse.
    """
    if value is None:
        return Fraction(0)
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise AmountError(f"{_shown(value)} is not a quantity")
    if isinstance(value, int):
        return max(min(Fraction(value), Fraction(_LARGEST)), Fraction(-_LARGEST))
    text = _number_text(value) if isinstance(value, float) else value.strip(" ")
    if len(text) <= _SURELY_SMALL and text.isascii() and text.isdecimal():
        return Fraction(int(text))  # as nearly all are: fractions and patterns would take most of a pod's conversion
    match = _SYNTAX.fullmatch(text)
    if match is None or not 0 < len(text) <= _LONGEST:
        raise AmountError(f"{_shown(value)} is not a quantity")
    if not match["number"].strip("+-."):
        if _WITHOUT_DIGITS.fullmatch(text):
            return Fraction(0)
        raise AmountError(f"{_shown(value)} is not a quantity")
    suffix = match["suffix"] or ""
    number = Fraction(match["number"])
    exact = number * (_SCALES[suffix] if suffix in _SCALES else _exponent(suffix[1:], number))
    return max(min(_round_up(exact, 10**9), Fraction(_LARGEST)), Fraction(-_LARGEST))


def parse_amount(value: object) -> int:
    """Return the number of devices that `value` asks for (rule R1): `2`, `"2"`, `2000m`, `20e-1` and `0.5k` count.

    Raises AmountError for fractions, negative numbers and what does not parse.
    """
    quantity = parse_quantity(value)
    if quantity < 0:
        raise AmountError(f"{_shown(value)} is negative")
    if quantity.denominator == 1:
        return quantity.numerator
    # The server looks at thousandths, rounded up: 0.9999999 is 1 to it, 1.0001 is refused.
    thousandths = _round_up(quantity, 1000) * 1000
    if thousandths % 1000:
        raise AmountError(f"{_shown(value)} is not a whole number")
    return int(thousandths // 1000)


def _exponent(digits: str, number: Fraction) -> Fraction:
    """Return ten to the power of `digits`, capped where the result is out of range anyway."""
    power = int(digits)
    if len(digits.lstrip("+-0")) > _LONGEST_EXPONENT:
        power = 10**_LONGEST_EXPONENT if power > 0 else -(10**_LONGEST_EXPONENT)
    return Fraction(10) ** power if number else Fraction(0)


def _round_up(value: Fraction, parts: int) -> Fraction:
    """Round away from zero to whole `parts` of one."""
    scaled = value * parts
    whole = -(-scaled // 1) if scaled >= 0 else scaled // 1
    return Fraction(int(whole), parts)


def _number_text(value: float) -> str:
    """Return a JSON number's text without a fraction that is zero: 2.0 is sent as 2."""
    return format(Decimal(repr(value)), "f").removesuffix(".0")


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= _LONGEST else f'"{value[:_LONGEST]}…"'
    return f"a number of {value.bit_length()} bits" if isinstance(value, int) and abs(value) > _LARGEST else repr(value)
