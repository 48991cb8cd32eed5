"""A text that is not whole: no collective of it is lost, and none reads what it cannot be."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

GROUPS = "replica_groups={{0,1},{2,3}}, use_global_device_ids=true"

PROGRAM = f"""HloModule m, num_partitions=4

%add (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}}

%body (c: (s32[], f32[8])) -> (s32[], f32[8]) {{
  %c = (s32[], f32[8]) parameter(0)
  %i = s32[] get-tuple-element(%c), index=0
  %h = f32[8]{{0}} get-tuple-element(%c), index=1
  %one = s32[] constant(1)
  %n = s32[] add(%i, %one)
  %r = f32[8]{{0}} all-reduce(%h), channel_id=1, {GROUPS}, to_apply=%add
  ROOT %out = (s32[], f32[8]) tuple(%n, %r)
}}

%condition (e: (s32[], f32[8])) -> pred[] {{
  %e = (s32[], f32[8]) parameter(0)
  %j = s32[] get-tuple-element(%e), index=0
  %end = s32[] constant(3)
  ROOT %go = pred[] compare(%j, %end), direction=LT
}}

ENTRY %main (w: f32[8]) -> f32[16] {{
  %w = f32[8]{{0}} parameter(0)
  %z = s32[] constant(0)
  %first = (s32[], f32[8]) tuple(%z, %w)
  %loop = (s32[], f32[8]) while(%first), condition=%condition, body=%body
  %v = f32[8]{{0}} get-tuple-element(%loop), index=1
  %begun = (f32[8]{{0}}, f32[16]{{0}}) all-gather-start(%v), channel_id=2, {GROUPS}, dimensions={{0}}
  %near = f32[8]{{0}} negate(%v)
  ROOT %ended = f32[16]{{0}} all-gather-done(%begun)
}}
"""


def rows(text):
    return [(row.name, row.executions, row.payload_bytes) for row in collectives(read(text), {})]


def change_line(was, now):
    assert was in PROGRAM
    return PROGRAM.replace(was, now, 1)


def test_the_program_itself_is_read():
    # 8 x 4 bytes three times, and a result of 16 x 4.
    assert rows(PROGRAM) == [("r", 3, 32), ("begun", 1, 64)]


LOOP = "  %loop = (s32[], f32[8]) while(%first), condition=%condition, body=%body\n"
SUM = f"%sum = f32[8]{{0}} all-reduce(%v), channel_id=3, {GROUPS}, to_apply=%add"


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        # A computation that ends early, or does not end.
        ("  %n = s32[] add", "}\n  %n = s32[] add", "line 15: stands outside of every computation"),
        ("  %near =", "}\n  %near =", "line 34: stands outside of every computation"),
        ("(%begun)\n}\n", "(%begun)\n}\n}\n", "line 36: stands outside of every computation"),
        ("tuple(%n, %r)\n}\n", "tuple(%n, %r)\n", "computation 'body' begins on line 9 and has no end before"),
        ("-> pred[] {\n", "-> pred[]\n", "line 20: stands outside of every computation"),
        ("(%begun)\n}\n", f"(%begun)\n}} {SUM}\n", "begins on line 26 and has no end"),
        # Two instructions on one line.
        ("index=1\n  %begun", f"index=1 {SUM}\n  %begun", "line 31: 'all-reduce(' where no instruction stands"),
        ("tuple(%z, %w)\n  %loop", "tuple(%z, %w) %loop", "line 30: the operand 'loop' is not in its computation"),
        (f"channel_id=2, {GROUPS}", f"channel_id=2, {GROUPS} %near = f32[8] negate(%v)", "line 32: cannot read"),
        # What is missing.
        (LOOP, "", "line 30: the operand 'loop' is not in its computation"),
        ("while(%first), condition=%condition, body=%body", "copy(%first)", "which nothing that runs calls"),
        ("  %begun =", "  %other =", "line 34: the operand 'begun' is not in its computation"),
        ("negate(%v)", "negate(%gone)", "line 33: the operand 'gone' is not in its computation"),
        ("all-gather-done(%begun)", "all-gather-done(%near)", "line 34: what it ends was begun by no all-gather-start"),
        # The same twice.
        ("%condition (e", "%body (e", "line 19: a second computation named 'body'"),
        ("  %j = ", "  ROOT %j = ", "a second ROOT of computation 'condition'"),
        ("%y = f32[] parameter(1)", "%y = f32[] parameter(0)", None),
        ("channel_id=2", "replica_groups={}", "line 32: cannot read 'replica_groups={{0,1},{2,3}}"),
        # What a collective says of itself.
        ("ids=true, dim", "ids =true, dim", "line 32: cannot read 'use_global_device_ids =true"),
        ("num_partitions=4", "num_parti tions=4", "line 1: cannot read"),
        ("all-reduce(%h)", "all-reduce(%h, i)", "line 15: cannot read each of its operands"),
        ("%h = f32[8]{0}", "%h = f32[-1,8]{0}", "line 12: cannot read the dims '-1,8'"),
        ("%h = f32[8]{0}", "%h = f32[+8]{0}", "line 12: cannot read the dims '+8'"),
        ("%h = f32[8]{0}", "%h = f32[4294967296,4294967296]{0}", "line 12: the shape"),
        ("%h = f32[8]{0}", "%h = f32[" + "9" * 5000 + "]{0}", "line 12: cannot read the dims"),
        ("{{0,1},{2,3}}", "mesh['a'=2,'b'=2] {'a':(0)0}", "line 15: device groups"),
        ("{{0,1},{2,3}}", "[2147483648,1]<=[2147483648]", "line 15: device groups"),
        ("{{0,1},{2,3}}", "{{0,2147483648}}", "line 15: its groups name device 2147483648"),
        ("{{0,1},{2,3}}", "{{" + ",".join(map(str, range(200_000))) + "}}", "line 15: its groups name device 199999"),
    ],
)
def test_nothing_is_lost_without_a_word(was, now, said):
    text = change_line(was, now)
    if said is None:
        assert rows(text) == rows(PROGRAM)  # of a sum's two operands, which no row depends on
        return
    with pytest.raises(HloError) as refused:
        rows(text)
    assert said in str(refused.value)
    assert len(str(refused.value)) <= 500
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("space", ["\t", "\v", "\x1c", "\N{NO-BREAK SPACE}", "\u2028", " \r"])
def test_any_space_is_one(space):
    assert rows(change_line(" all-reduce(", space + "all-reduce(")) == rows(PROGRAM)


def test_names_without_a_sigil_are_looked_up_too():
    bare = PROGRAM.replace("%", "")
    assert rows(bare) == rows(PROGRAM)
    with pytest.raises(HloError, match="line 33: the operand 'gone' is not in its computation"):
        rows(bare.replace("negate(v)", "negate(gone)"))


def test_tables_comments_and_words_outside_of_computations_are_none():
    tables = 'FileNames\n1 "a = b.py"\n\nStackFrames\n1 {file_location_id=1 parent_frame_id=1}\n\n'
    text = change_line("%add (x", "// a = all-reduce(b)\n" + tables + "%add (x") + "\n// the end {\nthe end\n"
    assert rows(text) == rows(PROGRAM)


def test_a_collective_in_quotes_is_none_and_one_behind_an_open_quote_is():
    said = change_line("negate(%v)", 'negate(%v), metadata={op_name="%x = f32[8] all-reduce(%v)"}')
    assert rows(said) == rows(PROGRAM)
    with pytest.raises(HloError, match="line 33: 'all-reduce\\(' where no instruction stands"):
        rows(said.replace('(%v)"}', "(%v)}"))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("channel_id=1", "channel_id=1," + " " * 300_000),
        ("channel_id=1", 'channel_id=1, metadata={op_name="' + '\\"' * 300_000),
        ("channel_id=1", "channel_id=1, calls={" * 30_000),
        ("channel_id=1", "channel_id=1" + "{" * 300_000),
        ("{{0,1},{2,3}}", "mesh['a'=2,'b'=2], device_ids=(" + "0," * 300_000),
        ("%near =", "a =" * 300_000),
        ("index=1\n", "index=1, metadata={op_name=" + '"\\"' * 200_000 + "\n"),
        ("f32[8]{0} negate", "f32[8]" + "/*" * 200_000 + " negate"),
        ("f32[8]{0} negate", "(" + "/*index=5*/" * 100_000 + "f32[8]{0}) negate"),
    ],
)
def test_a_line_of_much_of_the_same_is_read_once(was, now):
    """Each of these took hours where an expression went back over what it had read."""
    try:
        found = rows(change_line(was, now))
    except HloError:
        found = rows(PROGRAM)
    assert found == rows(PROGRAM)


def test_a_text_of_more_than_can_be_held_is_refused():
    with pytest.raises(HloError, match=r"1,048,6.. lines; the most that are read are 134,217,728 in 1,048,576"):
        read(PROGRAM + "\n" * (1 << 20))
