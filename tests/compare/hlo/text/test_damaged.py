"""Damaged text: one `HloError` that names the line, soon, and never a walk without end."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

PROGRAM = """HloModule m, num_partitions=4

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

body {
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  h = f32[8]{0} get-tuple-element(c), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  r = f32[8]{0} all-reduce(h), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add
  ROOT out = (s32[], f32[8]) tuple(n, r)
}

condition {
  e = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(e), index=0
  end = s32[] constant(3)
  ROOT go = pred[] compare(j, end), direction=LT
}

left {
  p.1 = f32[8]{0} parameter(0)
  ROOT n.1 = f32[8]{0} negate(p.1)
}

right {
  p.2 = f32[8]{0} parameter(0)
  ROOT r.2 = f32[8]{0} all-reduce(p.2), channel_id=2, replica_groups={}, use_global_device_ids=true, to_apply=add
}

ENTRY main {
  w = f32[8]{0} parameter(0)
  which = s32[] parameter(1)
  z = s32[] constant(0)
  first = (s32[], f32[8]) tuple(z, w)
  loop = (s32[], f32[8]) while(first), condition=condition, body=body
  v = f32[8]{0} get-tuple-element(loop), index=1
  ROOT last = f32[8]{0} conditional(which, v, v), branch_computations={left, right}
}
"""


def rows(text, axes=None):
    return collectives(read(text), axes or {})


def test_the_program_itself_is_read():
    assert [row.name for row in rows(PROGRAM)] == ["r", "r.2"]


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("  ROOT out = (s32[], f32[8]) tuple(n, r)\n", "", "line 15: it has no element"),
        ("(s32[], f32[8]) tuple(n, r)", "s32[] get-tuple-element(c), index=0", "line 16: it has no element"),
        ("get-tuple-element(c), index=1", "get-tuple-element(), index=1", "line 12: get-tuple-element without"),
        ("get-tuple-element(c), index=1", "get-tuple-element(c), index=7", "line 10: it has no element (7,)"),
        ("tuple(n, r)", "tuple(n)", "line 16: tuple without its operand 1"),
        ("compare(j, end)", "compare(j)", "line 23: "),
        ("condition=condition, body=body", "condition=body, body=body", "line 41: its condition is its body"),
        ("while(first)", "while()", "line 41: while without its operand 0"),
        ("conditional(which, v, v)", "conditional(which, v)", "line 43: conditional without its operand 2"),
        ("  p.1 = f32[8]{0} parameter(0)\n", "  p.1 = f32[8]{0} constant({...})\n", "line 28: the computation 'left'"),
        ("num_partitions=4", "num_partitions=99999999999", "line 1: num_partitions=99999999999"),
        ("num_partitions=4", "num_partitions=" + "9" * 5000, "line 1: num_partitions=999"),
        ("num_partitions=4", "num_partitions=\N{SUPERSCRIPT TWO}", "line 1: cannot read num_partitions="),
        ("num_partitions=4", "replica_count=100000, num_partitions=100000", "line 1: "),
        ("{{0,1},{2,3}}", "mesh['a'=99999999999,'b'=4] {'b'}", "line 15: "),
        ("{{0,1},{2,3}}", "[1,99999999999]<=[99999999999]", "line 15: "),
        ("negate(p.1)", "negate(n.1)", "line 28: the operand 'n.1' is made only after it"),
        ("negate(p.1)", "call(p.1), to_apply=right", None),
        ("negate(p.1)", "call(p.1), to_apply=left", "line 28: the computation 'left' leads back to itself"),
        (
            "true, to_apply=add\n}\n\nENTRY",
            "true, to_apply=right\n}\n\nENTRY",
            "line 33: the computation 'right' leads",
        ),
        ("negate(p.1)", "call(p.1), to_apply=main", "leads back to itself"),
        ("v = f32[8]{0} get", "first = f32[8]{0} get", "line 42: a second instruction named 'first'"),
        ("n = s32[] add(i, one)", "n = s32[] add(i)", "line 14: "),
        ("constant(3)", "constant(999999999999)", "line 22: "),
        (
            "h), channel_id=1, replica_groups={{0,1}",
            "h), channel_id=1, replica_group={{0,1}",
            "line 15: no replica_groups, and 'replica_group', which is not known",
        ),
        (
            "h), channel_id=1, replica_groups={{0,1},{2,3}}",
            "h), channel_id=1, source_target_pairs={{0,1},{2,3}}",
            "line 15: all-reduce has no source_target_pairs",
        ),
        ("use_global_device_ids=true", "use_global_device_ids=TRUE", "line 15: use_global_device_ids is true or"),
        ("while(first), condition=condition, body=body", "while(first)", "line 41: while calls no computation"),
        ("negate(p.1)", "call(p.1), to_aply=add", "line 28: call calls no computation"),
        ("h), channel_id=1, ", "h), ", "line 15: use_global_device_ids without channel_id"),
        ("{{0,1},{2,3}}", "{{0,,1},{2,3}}", "line 15: cannot read '0,,1' as numbers of devices"),
        ("all-reduce(h)", "all-gather(h)", "line 15: all-gather has no to_apply"),
        ("all-reduce(h)", "copy(h)", "line 15: copy is no collective, and has replica_groups"),
        ("all-reduce(h)", "al-reduce(h)", "line 15: al-reduce is no collective, and has replica_groups"),
        ("all-reduce(h)", "all-reduce(f32[4]{0} h)", "line 15: its operand 'h' is f32[8]{0}, not f32[4]{0}"),
        ("all-reduce(h)", "all-reduce(f32[8} h)", "line 15: cannot read the shape 'f32[8}'"),
        ("(1)\n  ROOT s = f32[]", "(1)   ROOT s = f32[]", "line 5: two instructions on one line"),
        ("f32[8]{0} all-reduce(h)", "f32[8]{0}all-reduce(h)", "line 15: cannot read the instruction"),
        ("(s32[], f32[8]) tuple(z, w)", "(" * 2000 + "s32[], f32[8]" + ")" * 2000 + " tuple(z, w)", "deeper"),
    ],
)
def test_damage_is_one_error_that_names_a_line(was, now, said):
    text = PROGRAM.replace(was, now, 1)
    assert text != PROGRAM
    if said is None:
        assert len(rows(text)) >= 2
        return
    with pytest.raises(HloError) as error:
        rows(text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (", ", ",  "),
        (", ", ", /* so */ "),
        (", ", ","),
        (", body=", ",\n    body="),
        ("body=", "body= "),
        ("to_apply=", "to_apply=/**/"),
        (" while(", " while ("),
        (" all-reduce(", " all-reduce ("),
        (" all-reduce(", " /* a\nb */ all-reduce("),
        (" {\n", " {  // here\n"),
        ("}\n\n", "}  \n\n"),
        ("condition=condition, body=body", "body=body, condition=condition"),
    ],
)
def test_white_space_and_comments_between_words_mean_nothing(was, now):
    text = PROGRAM.replace(was, now)
    assert text != PROGRAM
    assert [(row.name, row.executions, row.executions_are, row.reducer) for row in rows(text)] == [
        ("r", 3, "exact", "add"),
        ("r.2", 1, "upper-bound", "add"),
    ]


def test_a_loop_whose_condition_cannot_be_is_not_counted():
    text = PROGRAM.replace("compare(j, end), direction=LT", "copy(j)")  # a number, and no truth
    assert [(row.executions, row.executions_are) for row in rows(text)] == [(None, "unknown"), (1, "upper-bound")]


def test_calls_deeper_than_any_compiler_makes_them_are_refused():
    chain = "".join(
        f"f{at} {{\n  a = f32[8]{{0}} parameter(0)\n  ROOT b = f32[8]{{0}} call(a), to_apply=f{at + 1}\n}}\n"
        for at in range(3000)
    )
    chain += "f3000 {\n  a = f32[8]{0} parameter(0)\n"
    chain += "  ROOT b = f32[8]{0} all-reduce(a), replica_groups={}, to_apply=add\n}\n"
    with pytest.raises(HloError, match="calls go deeper"):
        rows(PROGRAM.replace("ENTRY", chain + "ENTRY"))


def test_axes_of_absurd_size_are_refused():
    with pytest.raises(HloError, match="devices"):
        rows(PROGRAM, {"data": 10**12})


def test_a_branch_is_chosen_by_one_number():
    text = PROGRAM.replace("which = s32[] parameter(1)", "which = s32[2]{0} iota(), iota_dimension=0")
    with pytest.raises(HloError, match="chosen by an array"):
        rows(text)
