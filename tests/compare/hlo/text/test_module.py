"""HLO text in anybody's spelling, and what is said of text that is none."""

import pytest

from compare.hlo.text.attributes import read_attributes, split_top
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

SIX_LINES = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %n = f32[4]{0} negate(f32[4]{0} %p), metadata={op_name="a, b={(" source_file="x.py" source_line=3}
}
"""


def test_an_instruction_knows_its_name_opcode_shape_operands_and_line():
    root = read(SIX_LINES).entry.root
    assert (root.name, root.opcode, root.line) == ("n", "negate", 5)
    assert [operand.name for operand in root.operands] == ["p"]
    assert root.shape.dims == (4,)
    assert root.op_name == "a, b={("


@pytest.mark.parametrize(
    "spelled",
    [
        SIX_LINES.replace("%", ""),
        SIX_LINES.replace("f32[4]{0} %p)", "%p)"),
        SIX_LINES.replace("f32[4]{0}", "f32[4]{0:T(128)S(1)}"),
        SIX_LINES.replace("ENTRY %main (p: f32[4]) -> f32[4] {", "ENTRY main {"),
        SIX_LINES.replace("\n", "\r\n"),
        "\n".join("    " + line for line in SIX_LINES.splitlines()),
        SIX_LINES.replace("negate(f32[4]{0} %p), ", "negate(f32[4]{0} %p),\n      "),
        "// a comment\n\n" + SIX_LINES,
    ],
)
def test_sigils_shapes_layouts_indents_and_broken_lines_do_not_matter(spelled):
    root = read(spelled).entry.root
    assert (root.name, root.opcode, [operand.name for operand in root.operands]) == ("n", "negate", ["p"])
    assert root.op_name == "a, b={("


def test_a_line_that_was_broken_keeps_its_number():
    broken = SIX_LINES.replace("negate(f32[4]{0} %p), ", "negate(f32[4]{0} %p),\n      ").replace("}\n", "}\n\n", 1)
    assert read(broken).entry.root.line == 5


def test_long_tuples_carry_index_comments():
    text = """HloModule m
ENTRY main {
  a = f32[2]{0} parameter(0)
  ROOT t = (f32[2], f32[2], f32[2], f32[2], f32[2], /*index=5*/f32[2]) tuple(a, a, a, a, a, /*index=5*/a)
}
"""
    root = read(text).entry.root
    assert len(root.operands) == 6
    assert len(root.shape) == 6


def test_attributes_end_where_their_brackets_do():
    text = ", a={x=1,y={2}}, b=\"quoted, {\", c=mesh['p,q'=2] {'p,q'}, d=%name"
    assert read_attributes(text, 0).values == {
        "a": "{x=1,y={2}}",
        "b": '"quoted, {"',
        "c": "mesh['p,q'=2] {'p,q'}",
        "d": "%name",
    }
    assert split_top("f32[2,3]{1,0} %a, (s32[], pred[]) %b, /*index=2*/%c") == [
        "f32[2,3]{1,0} %a",
        "(s32[], pred[]) %b",
        "%c",
    ]


def test_the_header_says_how_many_devices_and_what_is_donated():
    module = read(
        "HloModule m, input_output_alias={ {0}: (3, {}, may-alias), {1}: (5, {}, must-alias) }, replica_count=2, "
        "num_partitions=4\n" + SIX_LINES.partition("\n")[2]
    )
    assert (module.replica_count, module.num_partitions, module.num_devices) == (2, 4, 8)
    assert module.aliased_parameters == {3, 5}
    assert read(SIX_LINES.replace(", num_partitions=8", "")).num_devices is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("   \n\n", "empty"),
        ("hello", "not HLO text"),
        ("module @jit_f attributes {} {\n  func.func public @main() {}\n}\n", "StableHLO"),
        ("#loc1 = loc(unknown)\nmodule @jit_f {}", "StableHLO"),
        ("HloModule m, num_partitions=8\n", "is it cut"),
        (SIX_LINES[: SIX_LINES.index("ROOT")], "cut"),
        (SIX_LINES.replace("ENTRY ", ""), "is it cut"),
        (SIX_LINES + SIX_LINES, "second module"),
        (SIX_LINES.replace("num_partitions=8", "num_partitions=many") + "", "many"),
    ],
)
def test_text_that_is_not_one_whole_module_is_refused_in_one_line(text, said):
    with pytest.raises(HloError, match=said) as refused:
        _ = read(text).num_devices
    assert "\n" not in str(refused.value)


def test_what_cannot_be_read_is_named_by_its_line():
    with pytest.raises(HloError, match=r"^line 5: .*'q'"):
        _ = read(SIX_LINES.replace("%p), meta", "%q), meta")).entry.root.operands
    with pytest.raises(HloError, match=r"^line 5: "):
        _ = read(SIX_LINES.replace("negate(", "negate[")).entry.root
    with pytest.raises(HloError, match=r"^line 5: .*shape"):
        _ = read(SIX_LINES.replace("%n = f32", "%n = g99")).entry.root.shape
