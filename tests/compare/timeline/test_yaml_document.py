"""YAML of strangers ends in a value or in one line, and soon."""

import time

import pytest

from compare.timeline.errors import TimingError
from compare.timeline.yaml_document import YAML_BYTES, parse_yaml


def test_a_card_is_read():
    assert parse_yaml("a: [1, {b: 0.5}]\n# [[\nc: é\n".encode()) == {"a": [1, {"b": 0.5}], "c": "é"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('a: !!int ""', "no YAML"),
        ("a: !!float ''", "no YAML"),
        ("a: !!bool x", "no YAML"),
        ("a: !!timestamp x", "no YAML"),
        ("? [a]\n: b", "no YAML"),
        ("a: !!set [1]", "no YAML"),
        ("a: !!binary 3", "no YAML"),
        ("a: !!python/object/apply:os.system [x]", "no YAML"),
        ("a: &b [1]\nc: *b", "an alias"),
        ("a: &a [*a]", "an alias"),
        ("[" * 3000, "nested deeper than 64"),
        ("{a: " * 3000, "nested deeper than 64"),
        ("a: [" + "[], " * 100 + "[" * 64, "nested deeper than 64"),
        ("\n".join(" " * depth + "a:" for depth in range(350)), "nested too deep"),
        ("a: 1\n" * YAML_BYTES, f"larger than {YAML_BYTES:,} bytes"),
        ("a: \x07", "no YAML"),
    ],
)
def test_what_cannot_be_read_is_one_line_within_seconds(text, said):
    begun = time.process_time()
    with pytest.raises(TimingError) as error:
        parse_yaml(text.encode())
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert time.process_time() - begun < 5


@pytest.mark.slow
def test_the_largest_is_read_within_seconds():
    begun = time.process_time()
    assert parse_yaml(b"a: [" + b"1," * (YAML_BYTES // 2 - 10) + b"]")["a"][0] == 1
    assert time.process_time() - begun < 5
