"""How a collective joins parts, what its result goes into, and how far its data has come."""

from types import SimpleNamespace

import pytest

from tests.compare.hlo.provenance.test_gathers import ALL, DIMS, DOWN, SUM, UP, op_name, rows

PARTIAL = f"d = f32[8,32]{{1,0}} dot(p, w), {DIMS}{DOWN}"
REDUCE = f"s = f32[8,32]{{1,0}} all-reduce(d), {SUM}{DOWN}"
OUTSIDE = op_name("norm")


@pytest.mark.parametrize(
    ("root", "reducer"),
    [
        ("add(x, y)", "add"),
        ("maximum(x, y)", "maximum"),
        ("minimum(x, y)", "minimum"),
        ("multiply(x, y)", "multiply"),
        ("subtract(x, y)", ""),
    ],
)
def test_a_reducer_is_the_opcode_that_joins_two_parts(root, reducer):
    two = f"other {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] {root}\n}}\n"
    line = f"s = f32[8,32]{{1,0}} all-reduce(p), {ALL}, to_apply=other{DOWN}"
    assert rows(line, "r = f32[8,32]{1,0} negate(s)", computations=two)["s"].reducer == reducer


def test_a_reducer_that_widens_and_narrows_again_adds():
    two = (
        "other {\n  x = bf16[] parameter(0)\n  y = bf16[] parameter(1)\n  a = f32[] convert(x)\n"
        "  b = f32[] convert(y)\n  c = f32[] add(a, b)\n  ROOT s = bf16[] convert(c)\n}\n"
    )
    lines = (
        "h = bf16[8,32]{1,0} convert(p)",
        f"s = bf16[8,32]{{1,0}} all-reduce(h), {ALL}, to_apply=other{DOWN}",
        "r = bf16[8,32]{1,0} negate(s)",
    )
    assert rows(*lines, computations=two)["s"].reducer == "add"


def test_what_moves_data_has_no_reducer():
    line = f"g = f32[8,32]{{1,0}} all-gather(a), dimensions={{1}}, {ALL}{DOWN}"
    assert rows(line, "r = f32[8,32]{1,0} negate(g)")["g"].reducer == ""


STACKED = f"g = f32[4,8,8]{{2,1,0}} all-gather(a3), dimensions={{0}}, {ALL}{DOWN}"
SHAPED = "a3 = f32[1,8,8]{2,1,0} reshape(a)"
SLICES = [f"q{n} = f32[1,8,8]{{2,1,0}} slice(g), slice={{[{n}:{n + 1}], [0:8], [0:8]}}" for n in range(2)]


@pytest.mark.parametrize(
    ("uses", "added"),
    [
        (("o = f32[] constant(0)", "r = f32[8,8]{1,0} reduce(g, o), dimensions={0}, to_apply=add"), True),
        (
            (
                "h = f32[4,8,8]{2,1,0} negate(g)",
                "o = f32[] constant(0)",
                "r = f32[8,8]{1,0} reduce(h, o), dimensions={0}, to_apply=add",
            ),
            True,
        ),
        ((*SLICES, "r = f32[1,8,8]{2,1,0} add(q0, q1)"), True),
        # A mean over another dim, a maximum, the own part and a residual.
        (("o = f32[] constant(0)", "r = f32[4,8]{1,0} reduce(g, o), dimensions={2}, to_apply=add"), False),
        (("o = f32[] constant(0)", "r = f32[8,8]{1,0} reduce(g, o), dimensions={0}, to_apply=top"), False),
        ((SLICES[0], "r = f32[1,8,8]{2,1,0} add(q0, a3)"), False),
    ],
)
def test_a_gather_is_added_up_where_a_local_sum_makes_one_part_of_all(uses, added):
    top = "top {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] maximum(x, y)\n}\n"
    (operand,) = rows(SHAPED, STACKED, *uses, computations=top)["g"].operands
    assert operand.added_up is added


EXCHANGED = f"g = f32[4,2,8]{{2,1,0}} all-to-all(a4), dimensions={{0}}, {ALL}{DOWN}"
PIECES = (
    f"g = (f32[2,8]{{1,0}}, f32[2,8]{{1,0}}, f32[2,8]{{1,0}}, f32[2,8]{{1,0}}) all-to-all(p0, p1, p2, p3), {ALL}{DOWN}"
)
CUT = [f"p{n} = f32[2,8]{{1,0}} slice(a), slice={{[{2 * n}:{2 * n + 2}], [0:8]}}" for n in range(4)]
TAKEN = [f"t{n} = f32[2,8]{{1,0}} get-tuple-element(g), index={n}" for n in range(4)]
ADDED = f"""added {{
  x = f32[2,8]{{1,0}} parameter(0)
  y = f32[2,8]{{1,0}} parameter(1)
  z = f32[2,8]{{1,0}} parameter(2)
  t = f32[2,8]{{1,0}} parameter(3)
  u = f32[2,8]{{1,0}} add(x, y){DOWN}
  v = f32[2,8]{{1,0}} add(u, z){DOWN}
  ROOT w = f32[2,8]{{1,0}} add(v, t){DOWN}
}}
"""
PARTS = [
    line
    for n in range(4)
    for line in (
        f"s{n} = f32[1,2,8]{{2,1,0}} slice(g), slice={{[{n}:{n + 1}], [0:2], [0:8]}}",
        f"q{n} = f32[2,8]{{1,0}} bitcast(s{n})",
    )
]
FUSED = f"r = f32[2,8]{{1,0}} fusion(q0, q1, q2, q3), kind=kLoop, calls=added{DOWN}"
WHOLE = "a4 = f32[4,2,8]{2,1,0} reshape(a)"
ZERO = "o = f32[] constant(0)"
REDUCED = "r = f32[2,8]{1,0} reduce(g, o), dimensions={0}, to_apply=add"
STACK = "k = f32[8,8]{1,0} concatenate(t0, t1, t2, t3), dimensions={0}"
RESHAPED = "k4 = f32[4,2,8]{2,1,0} reshape(k)"


@pytest.mark.parametrize(
    ("lines", "added"),
    [
        ((WHOLE, EXCHANGED, ZERO, REDUCED), True),
        ((WHOLE, EXCHANGED, "r = f32[4,2,8]{2,1,0} negate(g)"), False),
        ((WHOLE, EXCHANGED, *PARTS, FUSED), True),
        # Of its own part, or with what was there before.
        ((WHOLE, EXCHANGED, ZERO, "r = f32[4,2]{1,0} reduce(g, o), dimensions={2}, to_apply=add"), False),
        ((WHOLE, EXCHANGED, "r = f32[4,2,8]{2,1,0} add(g, a4)"), False),
        # In parts, as XLA writes it for CPUs.
        ((*CUT, PIECES, *TAKEN, STACK, RESHAPED, ZERO, REDUCED.replace("(g", "(k4")), True),
        (
            (
                *CUT,
                PIECES,
                *TAKEN,
                "l = f32[2,8]{1,0} add(t0, t1)",
                "m = f32[2,8]{1,0} add(t2, t3)",
                "r = f32[2,8]{1,0} add(l, m)",
            ),
            True,
        ),
        ((*CUT, PIECES, *TAKEN, FUSED.replace("q", "t")), True),
        ((*CUT, PIECES, *TAKEN, STACK, "r = f32[8,8]{1,0} add(k, a)"), False),
    ],
)
def test_an_exchange_is_added_up_where_a_local_sum_makes_one_part_of_all(lines, added):
    assert {operand.added_up for operand in rows(*lines, computations=ADDED)["g"].operands} == {added}


PAIRS = "source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"


@pytest.mark.parametrize(
    ("use", "added"),
    [
        ("r = f32[8,8]{1,0} add(g, a)", True),
        ("r = f32[8,8]{1,0} maximum(g, a)", False),
        ("r = f32[16,8]{1,0} concatenate(g, a), dimensions={0}", False),
    ],
)
def test_a_permute_is_added_up_where_it_is_added_to_another_part(use, added):
    (operand,) = rows(f"g = f32[8,8]{{1,0}} collective-permute(a), channel_id=1, {PAIRS}{DOWN}", use)["g"].operands
    assert operand.added_up is added


@pytest.mark.parametrize(
    ("uses", "steps"),
    [
        ((f"r = f32[8,32]{{1,0}} add(s, p){OUTSIDE}",), 1),
        (
            (
                "c = f32[8,32]{1,0} copy(s)",
                f"m = f32[8,32]{{1,0}} multiply(c, p){DOWN}",
                f"r = f32[8,32]{{1,0}} add(m, p){OUTSIDE}",
            ),
            3,
        ),
        # An operand of a product first, or of another collective; or the program ends.
        ((f"m = f32[8,32]{{1,0}} dot(s, w), {DIMS}{DOWN}", f"r = f32[8,32]{{1,0}} add(m, p){OUTSIDE}"), None),
        ((f"m = f32[8,32]{{1,0}} all-reduce(s), {SUM}{UP}", f"r = f32[8,32]{{1,0}} add(m, p){OUTSIDE}"), None),
        ((f"r = f32[8,32]{{1,0}} negate(s){DOWN}",), None),
    ],
)
def test_steps_to_the_end_of_a_scope_are_counted_past_no_product_and_no_collective(uses, steps):
    (operand,) = rows(PARTIAL, REDUCE, *uses)["s"].operands
    assert operand.steps_to_end == steps


RING = [SimpleNamespace(scope="layer.attention.core", kind="collective-permute", axes="tp")]
HOP = "channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}" + op_name("layer.attention.core")


def test_hops_are_counted_along_the_data_and_not_along_what_is_made_of_it():
    lines = [
        f"k1 = f32[8,8]{{1,0}} collective-permute(a), {HOP}",
        "c = bf16[8,8]{1,0} convert(k1)",
        f"k2 = bf16[8,8]{{1,0}} collective-permute(c), {HOP}",
        "n = bf16[8,8]{1,0} tanh(k2)",
        f"k3 = bf16[8,8]{{1,0}} collective-permute(n), {HOP}",
        "r = bf16[8,8]{1,0} negate(k3)",
    ]
    found = rows(*lines, asked=RING)
    assert [found[name].operands[0].earlier_hops for name in ("k1", "k2", "k3")] == [0, 1, 0]


LOOP = f"""body {{
  t = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  k = f32[8,8]{{1,0}} get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  moved = f32[8,8]{{1,0}} collective-permute(k), {HOP}
  ROOT b = (s32[], f32[8,8]) tuple(j, moved)
}}
until {{
  t = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT
}}
"""


def test_data_that_a_loop_carries_around_has_no_number_of_hops():
    lines = (
        "zero = s32[] constant(0)",
        "start = (s32[], f32[8,8]) tuple(zero, a)",
        "l = (s32[], f32[8,8]) while(start), condition=until, body=body",
        "r = f32[8,8]{1,0} get-tuple-element(l), index=1",
    )
    assert rows(*lines, computations=LOOP, asked=RING)["moved"].operands[0].earlier_hops is None
