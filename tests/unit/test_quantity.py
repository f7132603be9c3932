"""Amounts are read as the API server reads them: each row was put to k8s.io/apimachinery (resource.Quantity) itself."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpu2dra.quantity import AmountError, parse_amount, parse_quantity

WHOLE: tuple[tuple[object, int], ...] = (
    # numbers of JSON
    (0, 0),
    (1, 1),
    (8, 8),
    (2.0, 2),
    (-0.0, 0),
    (32.0, 32),
    # plain texts
    ("0", 0),
    ("2", 2),
    ("+2", 2),
    ("02", 2),
    ("007", 7),
    ("2.", 2),
    ("2.0", 2),
    ("+2.000", 2),
    ("-0", 0),
    (" 2", 2),
    ("2 ", 2),
    # SI suffixes
    ("2000m", 2),
    ("1000.0m", 1),
    ("2000.m", 2),
    ("2000000u", 2),
    ("2000000000n", 2),
    ("0k", 0),
    ("1k", 1000),
    ("0.5k", 500),
    (".5k", 500),
    ("+.5k", 500),
    ("0.001k", 1),
    ("1.5k", 1500),
    ("2M", 2_000_000),
    ("0.000002M", 2),
    ("1G", 10**9),
    ("1T", 10**12),
    ("1P", 10**15),
    # binary suffixes
    ("1Ki", 1024),
    ("1.5Ki", 1536),
    ("0.5Ki", 512),
    ("1Mi", 2**20),
    ("1Gi", 2**30),
    ("1Ti", 2**40),
    ("1Pi", 2**50),
    # exponents: an E alone is a suffix, with digits it is an exponent
    ("2e0", 2),
    ("2E0", 2),
    ("20e-1", 2),
    ("20E-1", 2),
    ("1e+1", 10),
    ("3e3", 3000),
    ("0.1e1", 1),
    ("0.1E1", 1),
    ("0e9", 0),
    # a text without digits is zero, but an empty one
    (".", 0),
    ("-", 0),
    ("+.", 0),
    ("k", 0),
    ("-m", 0),
    ("E", 0),
    ("Ti", 0),
    ("e1", 0),
    ("e+30", 0),
    ("e-9", 0),
    (" n ", 0),
    # rounded up to a billionth first, to a thousandth next
    ("0.9999999", 1),
    ("0.9990001", 1),
    ("999999999n", 1),
    ("1999999999n", 2),
)


@pytest.mark.parametrize(("text", "amount"), WHOLE, ids=repr)
def test_a_whole_number_in_any_spelling_counts(text: object, amount: int) -> None:
    assert parse_amount(text) == amount


def test_null_is_zero() -> None:
    assert parse_amount(None) == 0


@pytest.mark.parametrize(
    "text",
    [
        "500m",
        "1.5",
        0.5,
        2.5,
        "1.0001",
        "1.000000001",
        "1.0000000001",
        "1n",
        "1e-1",
        "1e-9",
        "1e-20",
        "0.0005k",
        "1.0m",
        1e-7,
    ],
)
def test_a_part_of_a_device_is_refused(text: object) -> None:
    with pytest.raises(AmountError, match=r"is not a whole number\Z"):
        parse_amount(text)


@pytest.mark.parametrize("text", ["-1", -1, -2.0, "-1k", "-0.5", "-1n", "-1e-20", "-1Ki", "-2.25Ei", "-1e99999"])
def test_a_negative_amount_is_refused(text: object) -> None:
    with pytest.raises(AmountError, match=r"is negative\Z"):
        parse_amount(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "two",
        "1 000",
        "1_000",
        "0x2",
        "++1",
        "+-1",
        "1kk",
        "1ki",
        "2K",
        "1mi",
        "1e",
        "1E+",
        "1e3m",
        "12e0k",
        "NaN",
        "2\n",
        "2\t",
        "1,5",
        "\N{ARABIC-INDIC DIGIT TWO}",
        "\N{FULLWIDTH DIGIT TWO}",
        True,
        False,
        [],
        {},
        [2],
        {"a": 2},
        float("nan"),
        float("inf"),
        float("-inf"),
        b"2",
        "Pi",
        "Ei",
        "-Ei",
        "e-10",
        "e",
        "ki",
        "+-",
        "..",
    ],
)
def test_what_does_not_parse_is_refused(text: object) -> None:
    with pytest.raises(AmountError, match=r"is not a quantity\Z"):
        parse_amount(text)


@pytest.mark.parametrize(
    "text", ["9" * 5000, "1e" + "9" * 5000, "0." + "0" * 5000 + "1", "9" * 257], ids=lambda t: t[:9]
)
def test_a_text_longer_than_anybody_writes_is_refused_and_cut_in_the_message(text: str) -> None:
    with pytest.raises(AmountError, match=r"…\" is not a quantity\Z") as caught:
        parse_amount(text)
    assert len(str(caught.value)) < 300


def test_a_text_is_shown_whole_up_to_256_characters_and_a_number_up_to_the_largest() -> None:
    with pytest.raises(AmountError, match=rf'^"{"x" * 256}" is not a quantity$'):
        parse_amount("x" * 256)
    with pytest.raises(AmountError, match=rf"^-{LARGEST} is negative$"):
        parse_amount(-LARGEST)


LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    "value",
    [LARGEST, 2**63, str(2**63), "9" * 256, "9.3E", "1e19", "1e99", "1e99999999", "8Ei", "9Ei", "1e9999999999"],
    ids=lambda value: str(value)[:24],
)
def test_the_largest_quantity_is_the_servers(value: object) -> None:
    assert parse_quantity(value) == LARGEST
    assert parse_amount(value) == LARGEST


def test_the_smallest_quantity_is_the_servers() -> None:
    assert parse_quantity("-9Ei") == parse_quantity(-(10**30)) == -LARGEST


def test_numbers_too_long_to_write_down_are_read_and_told_by_their_size() -> None:
    assert parse_amount(1 << 20000) == LARGEST
    with pytest.raises(AmountError, match=r"^a number of 20001 bits is negative$"):
        parse_amount(-1 << 20000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1Ei", 2**60),
        ("1E", 10**18),
        ("500m", Fraction(1, 2)),
        ("1u", Fraction(1, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("100u", Fraction(1, 10**4)),
        ("0.1n", Fraction(1, 10**9)),
        ("1e-99999999", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        ("2.25", Fraction(9, 4)),
        (0.25, Fraction(1, 4)),
        ("0e99999999", 0),
        (None, 0),
        ("1.0000000001", Fraction(1_000_000_001, 10**9)),
        ("-1.0000000001", Fraction(-1_000_000_001, 10**9)),
    ],
)
def test_the_exact_value_is_kept_to_a_billionth_rounded_away_from_zero(text: object, value: Fraction | int) -> None:
    assert parse_quantity(text) == value
