"""Where computations begin and end: the pass for common texts and the reading line by line agree."""

import pytest

from compare.hlo.text.computation_spans import find_spans

TEXT = """HloModule m, num_partitions=2

FileNames
1 "a.py"

%inner (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%p)
}, execution_thread="sparsecore"

ENTRY %main (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %c = f32[8]{0} call(%x), to_apply=%inner
}
"""


def described(text):
    """Of each computation: its name, whether it is ENTRY, its lines, and the number of the first."""
    found = find_spans(text)
    return [(span.name, span.is_entry, found.text[span.begin : span.end], span.first) for span in found.spans]


def test_a_common_text_is_read_in_one_pass():
    spans = find_spans(TEXT).spans
    assert [(span.name, span.is_entry, span.first, span.names) for span in spans] == [
        ("inner", False, 6, ["p", "n"]),
        ("main", True, 11, ["x", "c"]),
    ]
    assert TEXT[spans[0].begin : spans[0].end].split("\n")[1:] == [
        "  %p = f32[8]{0} parameter(0)",
        "  ROOT %n = f32[8]{0} negate(%p)",
    ]


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("}, exec", "  \n}, exec"),
        ("  ROOT %n", "  // a comment\n  ROOT %n"),
        ("  %p = f32[8]{0} parameter(0)", "  p = f32[8]{0} parameter(0)"),
        ("\n\nENTRY", "\n \nENTRY"),
        ("\n\nENTRY", "\n// a comment\nENTRY"),
        ("ENTRY %main", "ENTRY  %main"),
        ("HloModule", " HloModule"),
    ],
)
def test_any_other_text_is_read_line_by_line_and_has_the_same_computations(was, now):
    assert was in TEXT
    spans = find_spans(TEXT.replace(was, now)).spans
    assert [(span.name, span.is_entry) for span in spans] == [("inner", False), ("main", True)]
    assert [span.names for span in spans] == [None, None]


def test_joined_lines_keep_their_numbers():
    found = find_spans(TEXT.replace("call(%x), ", "call(%x),\n    "))
    assert found.text == TEXT
    assert found.numbers is not None
    assert found.numbers[-3:] == [13, 15, 16]


RECOVERY = """HloModule m, origin_recovery_table={
  {"orig"} : {"orig__0"},
  "
    HloModule recovery, entry_computation_layout={(s32[2]{0})->s32[2]{0}}

    ENTRY %recover (p: s32[2]) -> s32[2] {
      %p = s32[2]{0} parameter(0)
      ROOT %all-reduce.9 = s32[2]{0} all-reduce(%p), replica_groups={}
    }

  "
}, num_partitions=2"""


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("", ""),
        ('{"orig"} : {"orig__0"}', '{"orig" {0}} : {"orig__0" {1,0}}'),  # elements of tuples
        ("parameter(0)", 'parameter(0), metadata={op_name="f{g"}'),  # as XLA prints it, without a backslash
        ("parameter(0)", r"parameter(0), metadata={op_name=\"f{g\"}"),  # as XLA reads it
        ("\n}, num_partitions", "\n  }, num_partitions"),
    ],
)
def test_modules_that_recover_values_are_no_part_of_the_program(was, now):
    """They stand in the header, each in quotes, with computations of their own."""
    _, _, rest = TEXT.partition("\n")
    found = find_spans(RECOVERY.replace(was, now, 1) + "\n" + rest)
    assert found.header.attributes == {"num_partitions": "2"} == find_spans(TEXT).header.attributes
    assert [(span.name, span.first - 11, span.names) for span in found.spans] == [
        (span.name, span.first, span.names) for span in find_spans(TEXT).spans
    ]
