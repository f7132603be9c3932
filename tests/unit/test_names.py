"""Names that the conversion makes up: inside the API's limits, unique, the same everywhere (R8)."""

from __future__ import annotations

import pytest

from gpu2dra.names import LABEL_LENGTH, SUBDOMAIN_LENGTH, canonical_json, digest, namer, shorten, subdomain, unique


def test_canonical_json_sorts_keys_has_no_blanks_and_escapes_nothing_that_helm_does_not() -> None:
    value = {"b": [1, {"d": None, "c": True}], "a": "ü<&>'\"\\\n"}
    assert canonical_json(value) == '{"a":"ü<&>\'\\"\\\\\\n","b":[1,{"c":true,"d":null}]}'


def test_the_digest_is_the_first_8_hex_digits_of_sha_256() -> None:
    # printf '{"a":"ü"}' | sha256sum
    assert digest({"a": "ü"}) == "fd621823"
    assert digest({}) == "44136fa3"


def test_the_digest_takes_what_is_no_unicode_text() -> None:
    assert len(digest("\ud800")) == 8


@pytest.mark.parametrize(
    ("name", "limit", "tail", "short"),
    [
        ("abc", 3, "", "abc"),
        ("abcd", 3, "", "abc"),
        ("ab-", 3, "", "ab-"),
        ("abc", 5, "-9", "abc-9"),
        ("abcd", 5, "-9", "abc-9"),
        ("ab-cd", 5, "-9", "ab-9"),
        ("ab.-cd", 6, "-9", "ab-9"),
        ("a" * 253, 253, "-gpu-01234567", "a" * 240 + "-gpu-01234567"),
        ("${NAME}-of-a-workload", 10, "-9", "${NAME}-of-a-workload-9"),
    ],
)
def test_a_name_is_cut_before_its_tail(name: str, limit: int, tail: str, short: str) -> None:
    assert shorten(name, limit, tail) == short


@pytest.mark.parametrize(
    ("name", "taken", "limit", "given"),
    [
        ("gpu", (), 63, "gpu"),
        ("gpu", ("mig",), 63, "gpu"),
        ("gpu", ("gpu",), 63, "gpu-2"),
        ("gpu", ("gpu", "gpu-2", "gpu-4"), 63, "gpu-3"),
        ("abcdef", (), 4, "abcd"),
        ("abcdef", ("abcd",), 4, "ab-2"),
        ("a" * 70, ("a" * 63,), 63, "a" * 61 + "-2"),
        ("g", ("g", *(f"g-{n}" for n in range(2, 10))), 63, "g-10"),
    ],
)
def test_a_taken_name_gets_the_first_free_number(name: str, taken: tuple[str, ...], limit: int, given: str) -> None:
    assert unique(name, taken, limit) == given


def test_the_limits_are_those_of_rfc_1123() -> None:
    assert (LABEL_LENGTH, SUBDOMAIN_LENGTH) == (63, 253)


def test_claim_entries_are_labels_of_at_most_63_characters() -> None:
    assert unique("a" * 64, ()) == "a" * 63


def test_a_namer_remembers_what_it_has_given_out_and_leaves_the_taken_names_alone() -> None:
    taken = ["gpu"]
    name = namer(taken)
    assert [name("gpu"), name("gpu"), name("mig"), name("mig"), name("gpu-2")] == [
        "gpu-2",
        "gpu-3",
        "mig",
        "mig-2",
        "gpu-2-2",
    ]
    assert taken == ["gpu"]


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("web", "web"),
        ("My_App", "my-app"),
        ("a.b-c", "a.b-c"),
        ("-a-", "a"),
        ("..a b..", "a-b"),
        ("___", ""),
        ("", ""),
        ("${NAME}-X", "${NAME}-X"),
        ("{{ name }}", "{{ name }}"),
        ("$NAME", "$NAME"),
        ("Ünï", "n"),
    ],
)
def test_a_name_is_put_into_the_letters_of_a_subdomain(name: str, valid: str) -> None:
    assert subdomain(name) == valid
