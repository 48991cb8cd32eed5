"""Numbers as readers see them."""

import pytest

from compare.render.units import (
    axes_text,
    bytes_text,
    count_text,
    flops_text,
    keep_units_together,
    list_text,
    percent_text,
    ratio_text,
    time_text,
    times_text,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (72, "72 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (49_152, "49.2 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (9_996_000, "10.0 MB"),
        (99_960_000, "100 MB"),
        (1_610_612_736, "1.61 GB"),
        (3_305_111_640, "3.31 GB"),
        (-41_943_040, "−41.9 MB"),
        (5 * 10**18, "5000 PB"),
    ],
)
def test_bytes_have_three_digits_and_a_decimal_unit(count: int | None, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.25, "0.25 ns"),
        (12, "12 ns"),
        (999.4, "999 ns"),
        (999.5, "1.00 µs"),
        (850_000, "850 µs"),
        (61_049_000, "61.0 ms"),
        (1_530_000_000, "1.53 s"),
        (-24_100_000, "−24.1 ms"),
        (7.2e12, "7200 s"),
    ],
)
def test_times_have_three_digits_and_a_unit(ns: float | None, text: str) -> None:
    assert time_text(ns) == text


@pytest.mark.parametrize(
    ("count", "text"), [(None, "–"), (0, "0 FLOP"), (999, "999 FLOP"), (18_556_360_065_024, "18.6 TFLOP")]
)
def test_flops_have_three_digits_and_a_decimal_unit(count: int | None, text: str) -> None:
    assert flops_text(count) == text


@pytest.mark.parametrize(
    ("share", "text"), [(None, "–"), (0, "0.00 %"), (0.003921984, "0.39 %"), (0.29642222, "29.6 %"), (1, "100 %")]
)
def test_shares_are_per_cent(share: float | None, text: str) -> None:
    assert percent_text(share) == text


def test_a_ratio_says_what_it_leaves_out() -> None:
    assert ratio_text(1.2817) == "1.28 ×"
    assert ratio_text(1.2817, "at least") == "at least 1.28 ×"
    assert ratio_text(1312.4) == "1,312 ×"
    assert ratio_text(None) == "–"


def test_executions_say_when_they_are_a_bound_or_unknown() -> None:
    assert times_text(2560) == "2,560 ×"
    assert times_text(64, "upper-bound") == "at most 64 ×"
    assert times_text(80, "stated") == "80 × by the compiler's word"
    assert times_text(None, "unknown") == "? ×"


def test_words_are_joined_as_people_join_them() -> None:
    assert axes_text("pp,tp") == "over pp and tp"
    assert axes_text("?") == "over unknown axes"
    assert list_text(["JAX"]) == "JAX"
    assert list_text(["a", "b", "c"]) == "a, b and c"
    assert list_text([]) == ""


def test_no_line_may_end_between_a_number_and_its_unit() -> None:
    assert keep_units_together("of a 61 ms step 850 µs") == "of a 61\N{NO-BREAK SPACE}ms step 850\N{NO-BREAK SPACE}µs"
    assert keep_units_together("it moves 1.7 × what 41.9 MB are, 84 % of it") == (
        "it moves 1.7\N{NO-BREAK SPACE}× what 41.9\N{NO-BREAK SPACE}MB are, 84\N{NO-BREAK SPACE}% of it"
    )


def test_one_is_not_many() -> None:
    assert [count_text(1, "microbatch"), count_text(4, "microbatch")] == ["1 microbatch", "4 microbatches"]
    assert [count_text(1, "device"), count_text(0, "device"), count_text(8, "device")] == [
        "1 device",
        "0 devices",
        "8 devices",
    ]
