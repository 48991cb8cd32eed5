"""What a gather is for: the operand of a product, or the other half of a sum that was scattered."""

import re
from types import SimpleNamespace

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read

ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
ALL = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
SUM = f"{ALL}, to_apply=add"
ASKED = [SimpleNamespace(scope="layer.mlp.down", kind="all-reduce", axes="tp")]
DIMS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def op_name(scope):
    return f', metadata={{op_name="jit(f)/{scope}/op"}}'


DOWN, UP = op_name("layer.mlp.down"), op_name("layer.mlp.up")
GATHER = f"g = f32[8,32]{{1,0}} all-gather(a), dimensions={{1}}, {ALL}{DOWN}"
SCATTER = f"rs = f32[8,8]{{1,0}} reduce-scatter(p), dimensions={{1}}, {SUM}{DOWN}"
PRODUCT = f"r = f32[8,32]{{1,0}} dot(g, w), {DIMS}{DOWN}"


def rows(*lines, computations="", asked=ASKED):
    given = ("a = f32[8,8]{1,0} parameter(0)", "w = f32[32,32]{1,0} parameter(1)", "p = f32[8,32]{1,0} parameter(2)")
    body = "\n  ".join((*given, *lines[:-1], "ROOT " + lines[-1]))
    module = read(f"HloModule m, num_partitions=4\n{ADD}{computations}ENTRY main {{\n  {body}\n}}\n")
    return {row.name: row for row in collectives(module, {"tp": 4}, contract=asked)}


def feeds(*lines, name="g", **more):
    (operand,) = rows(*lines, **more)[name].operands
    return operand.feeds_product


FUSED = f"""fused {{
  q = f32[8,32]{{1,0}} parameter(0)
  v = f32[32,32]{{1,0}} parameter(1)
  acc = f32[8,32]{{1,0}} parameter(2)
  d = f32[8,32]{{1,0}} convolution(q, v), dim_labels=bf_io->bf{DOWN}
  ROOT o = f32[8,32]{{1,0}} add(d, acc)
}}
"""


@pytest.mark.parametrize(
    "lines",
    [
        (GATHER, PRODUCT),
        (GATHER, "t = f32[32,8]{0,1} transpose(g), dimensions={1,0}", f"r = f32[32,8]{{1,0}} dot(w, t), {DIMS}{DOWN}"),
        (
            GATHER,
            "c = bf16[8,32]{1,0} convert(g)",
            "n = bf16[8,32]{1,0} negate(c)",
            f"r = f32[8,32]{{1,0}} dot(n, w), {DIMS}{DOWN}",
        ),
        (GATHER, "r = f32[8,32]{1,0} fusion(g, w, p), kind=kOutput, calls=fused"),
        (
            f"gs = (f32[8,8], f32[8,32]) all-gather-start(a), dimensions={{1}}, {ALL}{DOWN}",
            "g = f32[8,32]{1,0} all-gather-done(gs)",
            PRODUCT,
        ),
    ],
)
def test_a_gather_of_the_operand_of_a_product_of_its_own_scope_is_known(lines):
    (row,) = rows(*lines, computations=FUSED).values()
    assert row.operands[0].feeds_product


@pytest.mark.parametrize(
    "lines",
    [
        (GATHER, PRODUCT.replace("mlp.down", "mlp.up")),
        (GATHER, "r = f32[8,32]{1,0} fusion(p, w, g), kind=kOutput, calls=fused"),  # an accumulator is no operand
        (GATHER, f"q = f32[8,32]{{1,0}} dot(g, w), {DIMS}{UP}", f"r = f32[8,32]{{1,0}} dot(q, w), {DIMS}{DOWN}"),
        (GATHER, f"s = f32[8,32]{{1,0}} all-reduce(g), {SUM}{UP}", f"r = f32[8,32]{{1,0}} dot(s, w), {DIMS}{DOWN}"),
        (GATHER, "r = f32[8,32]{1,0} add(g, p)"),
    ],
)
def test_a_gather_of_anything_else_is_not(lines):
    assert not feeds(*lines, computations=FUSED)


def test_what_no_contract_asks_for_is_not_looked_at():
    assert not feeds(GATHER, PRODUCT, asked=())
    assert not feeds(GATHER, PRODUCT, asked=[SimpleNamespace(scope="layer.mlp.down", kind="all-gather", axes="tp")])


PLACE = "id = u32[] partition-id()"
REDUCE = f"g = f32[8,32]{{1,0}} all-reduce(z), {SUM}{DOWN}"


@pytest.mark.parametrize(
    ("lines", "gathers"),
    [
        (("two = u32[] constant(2)", "mine = pred[] compare(id, two), direction=EQ",
          "all = pred[8,32]{1,0} broadcast(mine), dimensions={}", "o = f32[] constant(0)",
          "zeros = f32[8,32]{1,0} broadcast(o), dimensions={}", "z = f32[8,32]{1,0} select(all, p, zeros)"), True),
        (("o = f32[] constant(0)", "zeros = f32[8,32]{1,0} broadcast(o), dimensions={}", "n = u32[] constant(0)",
          "eight = u32[] constant(8)", "at = u32[] multiply(id, eight)",
          "z = f32[8,32]{1,0} dynamic-update-slice(zeros, a, n, at)"), True),
        # A product with a mask, of numbers that only the device's place decides.
        (("two = u32[] constant(2)", "mine = pred[] compare(id, two), direction=EQ", "one = f32[] convert(mine)",
          "mask = f32[8,32]{1,0} broadcast(one), dimensions={}", "z = f32[8,32]{1,0} multiply(p, mask)"), True),
        # Zeros as a literal, as XLA folds them where they are few.
        (("two = u32[] constant(2)", "mine = pred[] compare(id, two), direction=EQ",
          "all = pred[8,32]{1,0} broadcast(mine), dimensions={}", "zeros = f32[8,32]{1,0} constant({ { 0, -0 }, {0} })",
          "z = f32[8,32]{1,0} select(all, p, zeros)"), True),
        (("two = u32[] constant(2)", "mine = pred[] compare(id, two), direction=EQ",
          "all = pred[8,32]{1,0} broadcast(mine), dimensions={}", "zeros = f32[8,32]{1,0} constant({ { 0, 1 }, {0} })",
          "z = f32[8,32]{1,0} select(all, p, zeros)"), False),
        # Partial sums, and data that decides what is zero (an embedding's ids do).
        ((f"z = f32[8,32]{{1,0}} dot(p, w), {DIMS}{UP}",), False),
        (("o = f32[] constant(0)", "zeros = f32[8,32]{1,0} broadcast(o), dimensions={}",
          "seen = pred[8,32]{1,0} compare(p, zeros), direction=GT",
          "z = f32[8,32]{1,0} select(seen, p, zeros)"), False),
        # Not zero elsewhere.
        (("two = u32[] constant(2)", "mine = pred[] compare(id, two), direction=EQ",
          "all = pred[8,32]{1,0} broadcast(mine), dimensions={}", "o = f32[] constant(1)",
          "ones = f32[8,32]{1,0} broadcast(o), dimensions={}", "z = f32[8,32]{1,0} select(all, p, ones)"), False),
    ],
)  # fmt: skip
def test_a_sum_gathers_where_its_parts_are_zero_elsewhere(lines, gathers):
    assert feeds(PLACE, *lines, REDUCE, PRODUCT) is gathers


def scatter(*lines, **more):
    return rows(*lines, **more)["g"].scattered_by


@pytest.mark.parametrize(
    "between",
    [
        ("a2 = f32[8,8]{1,0} copy(rs)",),
        ("a2 = f32[8,8]{1,0} add(rs, a)",),  # the residual
        ("q = f32[8,8]{1,0} multiply(rs, rs)", "a2 = f32[8,8]{1,0} multiply(q, a)"),  # a norm
    ],
)
def test_a_gather_knows_the_scatter_that_it_completes(between):
    assert scatter(SCATTER, *between, GATHER.replace("(a)", "(a2)")) == ("rs",)


@pytest.mark.parametrize(
    "between",
    [
        (f"a2 = f32[8,8]{{1,0}} dot(rs, rs), {DIMS}{UP}",),
        (f"a2 = f32[8,8]{{1,0}} all-reduce(rs), {SUM}{UP}",),
        ("a2 = f32[8,8]{1,0} copy(a)",),
    ],
)
def test_a_product_or_another_collective_between_breaks_that(between):
    assert scatter(SCATTER, *between, GATHER.replace("(a)", "(a2)")) == ()


def test_the_scatter_of_the_iteration_before_is_known_too():
    body = f"""body {{
  c = (s32[], f32[8,8], f32[8,32]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[8,8]{{1,0}} get-tuple-element(c), index=1
  whole = f32[8,32]{{1,0}} get-tuple-element(c), index=2
  g = f32[8,32]{{1,0}} all-gather(x), dimensions={{1}}, {ALL}{UP}
  h = f32[8,32]{{1,0}} multiply(g, whole)
  rs = f32[8,8]{{1,0}} reduce-scatter(h), dimensions={{1}}, {SUM}{DOWN}
  y = f32[8,8]{{1,0}} add(x, rs)
  one = s32[] constant(1)
  n = s32[] add(i, one)
  ROOT out = (s32[], f32[8,8], f32[8,32]) tuple(n, y, whole)
}}
condition {{
  e = (s32[], f32[8,8], f32[8,32]) parameter(0)
  j = s32[] get-tuple-element(e), index=0
  end = s32[] constant(3)
  ROOT go = pred[] compare(j, end), direction=LT
}}
"""
    before = f"first = f32[8,8]{{1,0}} reduce-scatter(p), dimensions={{1}}, {SUM}{op_name('embed')}"
    start = ("zero = s32[] constant(0)", "t = (s32[], f32[8,8], f32[8,32]) tuple(zero, first, p)")
    loop = "r = (s32[], f32[8,8], f32[8,32]) while(t), condition=condition, body=body"
    assert scatter(before, *start, loop, computations=body) == ("rs", "first")  # as they stand in the text


def carry(*lines):
    """The operand of the all-to-all of `d`, the last line."""
    shape = re.match(r"d = (\S+) ", lines[-1])[1]
    name = f"g = {shape} all-to-all(d), dimensions={{0}}, {ALL}"
    return rows(*lines, name)["g"].operands[0]


LOWEST = "low = f32[] constant(-inf)"


@pytest.mark.parametrize(
    ("lines", "parameters"),
    [
        # Side by side: a concatenation.
        ((LOWEST, "l = f32[8,40]{1,0} pad(p, low), padding=0_0x0_8", "m = f32[8,40]{1,0} pad(a, low), padding=0_0x32_0",
          "d = f32[8,40]{1,0} maximum(l, m)"), {0, 2}),
        ((LOWEST, "l = f32[8,48]{1,0} pad(p, low), padding=0_0x0_16",
          "m = f32[8,48]{1,0} pad(a, low), padding=0_0x32_8", "n = f32[8,48]{1,0} pad(a, low), padding=0_0x40_0",
          "lm = f32[8,48]{1,0} maximum(l, m)",
          "d = f32[8,48]{1,0} maximum(lm, n)"), {0, 2}),
        # Overlapping, or padded with what a maximum does not leave out: computed.
        ((LOWEST, "l = f32[8,40]{1,0} pad(p, low), padding=0_0x0_8", "m = f32[8,40]{1,0} pad(a, low), padding=0_0x31_1",
          "d = f32[8,40]{1,0} maximum(l, m)"), set()),
        (("low = f32[] constant(0)", "l = f32[8,40]{1,0} pad(p, low), padding=0_0x0_8",
          "m = f32[8,40]{1,0} pad(a, low), padding=0_0x32_0", "d = f32[8,40]{1,0} maximum(l, m)"), set()),
        (("d = f32[8,32]{1,0} maximum(p, p)",), set()),
        # Moved before.
        ((f"d = f32[8,32]{{1,0}} all-gather(a), dimensions={{1}}, {ALL}",), {0}),
        (("b = f32[8,32]{1,0} collective-permute(p), channel_id=3, source_target_pairs={{0,1},{1,0}}",
          "d = bf16[8,32]{1,0} convert(b)"), {2}),
        ((f"s = (f32[8,8], f32[8,32]) all-gather-start(a), dimensions={{1}}, {ALL}",
          "d = f32[8,32]{1,0} all-gather-done(s)"), {0}),
        ((f"s = ((f32[8,8], f32[8,32]), (f32[8,32], f32[8,128])) all-gather-start(a, p), dimensions={{1}}, {ALL}",
          "t = (f32[8,32], f32[8,128]) all-gather-done(s)", "d = f32[8,128]{1,0} get-tuple-element(t), index=1"), {2}),
        # A sum makes something new.
        ((f"d = f32[8,32]{{1,0}} all-reduce(p), {SUM}",), set()),
    ],
)  # fmt: skip
def test_weights_are_weights_joined_and_moved(lines, parameters):
    assert carry(*lines).parameters == parameters
