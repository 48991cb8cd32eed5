"""A lost scope, found again: producers before consumers, near before far; for permutes the contract has a say."""

from types import SimpleNamespace

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read

ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
REDUCE = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add"
LOST = f"lost = f32[8]{{0}} all-reduce(d), {REDUCE}"


def op_name(scope):
    return f', metadata={{op_name="jit(f)/{scope}/neg"}}'


def rows(*lines, computations="", wanted=()):
    body = "\n  ".join(("w = f32[8]{0} parameter(0)", *lines[:-1], "ROOT " + lines[-1]))
    module = read(f"HloModule m, num_partitions=4\n{ADD}{computations}ENTRY main {{\n  {body}\n}}\n")
    asked = [SimpleNamespace(scope=scope, kind="collective-permute", axes="tp") for scope in wanted]
    return collectives(module, {"tp": 4}, contract=asked)


def scope(*lines, name="lost", **more):
    return next(row.scope for row in rows(*lines, **more) if row.name == name)


def test_the_producers_come_first_even_when_a_consumer_is_nearer():
    far = "a = f32[8]{0} negate(w)" + op_name("layer.attention.qkv")
    assert (
        scope(
            far,
            "b = f32[8]{0} negate(a)",
            "d = f32[8]{0} negate(b)",
            LOST,
            "r = f32[8] negate(lost)" + op_name("layer.mlp.down"),
        )
        == "layer.attention.qkv"
    )


def test_without_a_producer_it_is_the_nearest_consumer():
    lines = ("d = f32[8]{0} copy(w)", LOST, "u = f32[8] negate(lost)", "v = f32[8] negate(u)" + op_name("layer.mlp.up"))
    assert scope(*lines, "r = f32[8] negate(v)" + op_name("layer.mlp.down")) == "layer.mlp.up"


def test_among_equals_the_first_in_the_text():
    one, other = (
        "a = f32[8]{0} negate(w)" + op_name("layer.mlp.up"),
        "b = f32[8]{0} negate(w)" + op_name("layer.attention.qkv"),
    )
    assert scope(one, other, "d = f32[8]{0} add(b, a)", LOST) == "layer.mlp.up"
    assert scope(other, one, "d = f32[8]{0} add(a, b)", LOST) == "layer.attention.qkv"


def test_what_depends_on_no_argument_is_shared_and_tells_nothing():
    shared = (
        "zeros = f32[8]{0} constant({0,0,0,0,0,0,0,0})" + op_name("layer.attention.qkv"),
        "place = u32[] partition-id()" + op_name("layer.attention.qkv"),
        "at = s32[] convert(place)" + op_name("layer.mlp.up"),
        "one = f32[1]{0} slice(w), slice={[0:1]}",
        "d = f32[8]{0} dynamic-update-slice(zeros, one, at)",
        LOST,
    )
    assert scope(*shared, "r = f32[8]{0} negate(lost)" + op_name("layer.attention.core")) == "layer.attention.core"
    assert scope(*shared) == "?"
    mine = (*shared[:3], "one = f32[1]{0} slice(w), slice={[0:1]}" + op_name("layer.mlp.down"), *shared[4:])
    assert scope(*mine, "r = f32[8]{0} negate(lost)" + op_name("layer.attention.core")) == "layer.mlp.down"


def test_a_loop_counter_tells_nothing_and_what_it_carries_of_an_argument_does():
    carried = "c = (s32[], f32[8]) parameter(0)\n  i = s32[] get-tuple-element(c), index=0"
    carried += "\n  h = f32[8]{0} get-tuple-element(c), index=1"
    text = f"""body {{
  {carried}
  one = s32[] constant(1)
  n = s32[] add(i, one){op_name("layer.attention.qkv")}
  m = f32[8]{{0}} negate(h){op_name("layer.mlp.up")}
  ROOT out = (s32[], f32[8]) tuple(n, m)
}}
condition {{
  {carried}
  end = s32[] constant(3)
  ROOT go = pred[] compare(i, end), direction=LT
}}
"""
    lines = (
        "z = s32[] constant(0)",
        "first = (s32[], f32[8]) tuple(z, w)",
        "loop = (s32[], f32[8]) while(first), condition=condition, body=body",
        "k = s32[] get-tuple-element(loop), index=0",
        "v = f32[8]{0} get-tuple-element(loop), index=1",
        "d = f32[8]{0} dynamic-slice(v, k), dynamic_slice_sizes={8}",
        LOST,
    )
    assert scope(*lines, computations=text) == "layer.mlp.up"


def test_nothing_anywhere_is_a_question_mark():
    assert scope("d = f32[8]{0} copy(w)", LOST) == "?"


def test_its_own_scope_is_never_given_up():
    lines = ("d = f32[8]{0} negate(w)" + op_name("layer.mlp.up"), LOST + op_name("layer.attention.core"))
    assert scope(*lines) == "layer.attention.core"
    assert scope(*lines, wanted=["layer.mlp.up"]) == "layer.attention.core"


def test_of_a_permute_a_scope_that_the_contract_names_goes_before_a_nearer_one():
    permute = "lost = f32[8]{0} collective-permute(d), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3}}"
    lines = (
        "a = f32[8]{0} negate(w)" + op_name("pipeline.shift"),
        "d = f32[8]{0} negate(a)" + op_name("layer.mlp.up"),
        permute,
    )
    assert scope(*lines) == "layer.mlp.up"
    assert scope(*lines, wanted=["pipeline.shift", "pipeline.collect"]) == "pipeline.shift"
    assert (
        scope(*lines, "r = f32[8] negate(lost)" + op_name("pipeline.collect"), wanted=["pipeline.collect"])
        == "pipeline.collect"
    )
    assert scope(*lines, wanted=["layer.mlp.down"]) == "layer.mlp.up"  # it is nowhere: then the nearest


def test_any_other_kind_is_not_pulled_to_the_scopes_of_the_contract():
    lines = ("a = f32[8]{0} negate(w)" + op_name("layer.mlp.down"), "d = f32[8]{0} negate(a)" + op_name("layer.mlp.up"))
    gather = "lost = f32[32]{0} all-gather(d), channel_id=1, replica_groups={}, dimensions={0}"
    for lost in (LOST, gather):
        assert scope(*lines, lost, wanted=["layer.mlp.down"]) == "layer.mlp.up"


def test_an_operand_of_a_combined_gather_is_not_pulled_to_them_either():
    lines = (
        "a = f32[8]{0} negate(w)" + op_name("layer.mlp.down"),
        "d = f32[8]{0} negate(a)" + op_name("layer.attention.core"),
        "e = f32[8]{0} negate(d)",
        "lost = (f32[32]{0}, f32[32]{0}) all-gather(d, e), channel_id=1, replica_groups={}, dimensions={0}",
    )
    (row,) = rows(*lines, wanted=["layer.mlp.down"])
    assert [operand.scope for operand in row.operands] == ["layer.attention.core"] * 2


def test_what_wraps_a_collective_tells_before_what_feeds_it():
    fused = f"fused {{\n  d = f32[8]{{0}} parameter(0)\n  ROOT {LOST}\n}}\n"
    lines = ("d0 = f32[8]{0} negate(w)" + op_name("layer.mlp.up"),)
    wrapped = "f = f32[8]{0} fusion(d0), kind=kCustom, calls=fused"
    assert scope(*lines, wrapped + op_name("layer.mlp.down"), computations=fused) == "layer.mlp.down"
    assert scope(*lines, wrapped, computations=fused) == "layer.mlp.up"


def test_fusions_are_looked_into():
    inside = "made {\n  q = f32[8]{0} parameter(0)\n  n = f32[8]{0} negate(q)" + op_name("layer.mlp.up")
    inside += "\n  m = f32[8]{0} negate(q)" + op_name("layer.mlp.up") + "\n  ROOT t = (f32[8], f32[8]) tuple(n, m)\n}\n"
    outside = "f = (f32[8], f32[8]) fusion(w), kind=kLoop, calls=made" + op_name("layer.mlp.up")
    for index, expected in ((0, "layer.mlp.up"), (1, "layer.mlp.up")):
        element = f"d = f32[8]{{0}} get-tuple-element(f), index={index}"
        assert scope(outside, element, LOST, computations=inside) == expected


def test_a_fusion_that_only_hands_a_value_on_does_not_use_it():
    carries = (
        "carries {\n  q = f32[8]{0} parameter(0)\n  z = f32[8]{0} parameter(1)\n  n = f32[8]{0} negate(z)"
        + op_name("layer.mlp.down")
    )
    carries += "\n  ROOT t = (f32[8], f32[8]) tuple(q, n)\n}\n"
    lines = (
        "d = f32[8]{0} copy(w)",
        LOST,
        "f = (f32[8], f32[8]) fusion(lost, w), kind=kLoop, calls=carries" + op_name("layer.mlp.down"),
        "e = f32[8]{0} get-tuple-element(f), index=0",
        "r = f32[8]{0} negate(e)" + op_name("layer.mlp.down"),
    )
    assert scope(*lines, computations=carries) == "layer.mlp.down"


def in_a_loop(*after):
    """The lost row in a body, and these instructions after it, the last of which is carried around."""
    lines = "\n  ".join((LOST, *after))
    last = after[-1].partition(" = ")[0] if after else "lost"
    return f"""body {{
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  d = f32[8]{{0}} get-tuple-element(c), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  {lines}
  ROOT out = (s32[], f32[8]) tuple(n, {last})
}}
condition {{
  e = (s32[], f32[8]) parameter(0)
  j = s32[] get-tuple-element(e), index=0
  end = s32[] constant(3)
  ROOT go = pred[] compare(j, end), direction=LT
}}
"""


AROUND = (
    "z = s32[] constant(0)",
    "h = f32[8]{0} negate(w)" + op_name("layer.attention.qkv"),
    "first = (s32[], f32[8]) tuple(z, h)",
    "loop = (s32[], f32[8]) while(first), condition=condition, body=body",
    "after = f32[8]{0} get-tuple-element(loop), index=1",
    "end = f32[8]{0} negate(after)" + op_name("layer.mlp.down"),
)


def test_what_runs_in_each_trip_has_no_scope_from_around_its_loop():
    assert scope(*AROUND, computations=in_a_loop()) == "?"


def test_a_loop_s_carry_is_gone_through():
    """What it is made of was made in the trip before, two instructions behind it."""
    before = ("x = f32[8]{0} negate(lost)", "y = f32[8]{0} negate(x)" + op_name("layer.mlp.up"))
    assert scope(*AROUND, computations=in_a_loop(*before)) == "layer.mlp.up"


def test_what_stands_before_a_loop_may_be_of_its_body():
    """As a gather of weights that the compiler has moved out of the loop."""
    lines = (AROUND[0], "d = f32[8]{0} negate(w)", LOST, AROUND[2].replace("h)", "lost)"), *AROUND[3:])
    inside = in_a_loop("x = f32[8]{0} negate(d)" + op_name("layer.mlp.up")).replace(LOST, "")
    assert scope(*lines, computations=inside) == "layer.mlp.up"


def test_a_lost_line_is_the_users_of_what_moves_and_the_makers_of_what_sums():
    at = ', metadata={{op_name="jit(f)/layer.mlp.up/x" source_file="m.py" source_line={}}}'.format
    groups = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
    pairs = "channel_id=1, source_target_pairs={{0,1},{1,0}}"
    kinds = {
        f"f32[32]{{0}} all-gather(d), {groups}, dimensions={{0}}": "m.py:9",
        f"f32[8]{{0}} all-to-all(d), {groups}, dimensions={{0}}": "m.py:9",
        f"f32[8]{{0}} collective-permute(d), {pairs}": "m.py:9",
        f"f32[8]{{0}} collective-broadcast(d), {groups}": "m.py:9",
        f"f32[8]{{0}} all-reduce(d), {groups}, to_apply=add": "m.py:3",
        f"f32[2]{{0}} reduce-scatter(d), {groups}, dimensions={{0}}, to_apply=add": "m.py:3",
    }
    for kind, line in kinds.items():
        (row,) = rows(
            "d = f32[8]{0} negate(w)" + at(3), f"lost = {kind}" + op_name("layer.mlp.up"), "r = f32[] neg(lost)" + at(9)
        )
        assert row.source_line == line, kind
    (alone,) = rows("d = f32[8]{0} negate(w)" + at(3), f"lost = {next(iter(kinds))}" + op_name("layer.mlp.up"))
    assert alone.source_line == "m.py:3"  # nobody uses it


def test_an_operand_bears_its_producers_scope_then_the_collectives_then_the_nearest():
    gather = "lost = (f32[32]{0}, f32[32]{0}, f32[32]{0}) all-gather(d, e, g), channel_id=1, "
    gather += "replica_groups={}, dimensions={0}"
    lines = (
        "h = f32[8]{0} negate(w)" + op_name("layer.mlp.down"),
        "d = f32[8]{0} negate(h)" + op_name("layer.mlp.up"),
        "e = f32[8]{0} negate(h)",
        "f = (f32[8]{0}, f32[8]{0}) tuple(d, e)",
        "c = f32[8]{0} get-tuple-element(f), index=0",
        "g = f32[8]{0} copy(c)",
    )
    for own, expected in ((op_name("layer.attention.core"), "layer.attention.core"), ("", "layer.mlp.down")):
        (row,) = rows(*lines, gather + own)
        assert [operand.scope for operand in row.operands] == ["layer.mlp.up", expected, "layer.mlp.up"]


def test_two_weights_gathered_at_once_are_each_their_users():
    lines = (
        "v = f32[8]{0} parameter(1)",
        "u = f32[8]{0} copy(v)",
        "g = (f32[32]{0}, f32[32]{0}) all-gather(w, u), channel_id=1, replica_groups={}, dimensions={0}"
        + op_name("layer.attention.qkv"),
        "a = f32[32]{0} get-tuple-element(g), index=0",
        "b = f32[32]{0} get-tuple-element(g), index=1",
        "x = f32[32]{0} negate(a)" + op_name("layer.attention.qkv"),
        "y = f32[32]{0} negate(b)" + op_name("layer.mlp.up"),
        "r = f32[32]{0} add(x, y)",
    )
    (row,) = rows(*lines)
    assert [operand.scope for operand in row.operands] == ["layer.attention.qkv", "layer.mlp.up"]
    (row,) = rows(*lines[:3])
    assert [operand.scope for operand in row.operands] == ["layer.attention.qkv"] * 2


def test_three_weights_gathered_at_once_by_a_start_are_each_their_users():
    """A start's tuple is its three operands, then its three results."""
    small, whole = ", ".join(["f32[8]{0}"] * 3), ", ".join(["f32[32]{0}"] * 3)
    scopes = ["layer.attention.qkv", "layer.mlp.up", "layer.mlp.down"]
    lines = (
        "v = f32[8]{0} parameter(1)",
        "u = f32[8]{0} parameter(2)",
        f"g = (({small}), ({whole})) all-gather-start(w, v, u), channel_id=1, replica_groups={{}}, dimensions={{0}}",
        f"d = ({whole}) all-gather-done(g)",
        *(f"e{at} = f32[32]{{0}} get-tuple-element(d), index={at}" for at in range(3)),
        *(f"x{at} = f32[32]{{0}} negate(e{at})" + op_name(scope) for at, scope in enumerate(scopes)),
        "r = f32[32]{0} add(x0, x2)",
    )
    (row,) = rows(*lines)
    assert [operand.scope for operand in row.operands] == scopes
    assert row.payload_bytes == 3 * 32 * 4
