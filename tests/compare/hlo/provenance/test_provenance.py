"""Where a collective's data comes from and goes to, in programs of a few lines."""

import re

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read

ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
ALL = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
REDUCE = f"{ALL}, to_apply=add"


def rows(text, *, header="", caches=None):
    return collectives(read(f"HloModule m, num_partitions=4{header}\n{ADD}{text}"), {"tp": 4}, caches=caches)


def entry(*lines):
    body = "\n  ".join(("w = f32[8]{0} parameter(0)", "k = f32[8]{0} parameter(1)", *lines[:-1], "ROOT " + lines[-1]))
    return f"ENTRY main {{\n  {body}\n}}\n"


def carry(*lines, computations="", **more):
    """The operand of the all-reduce of `d`, the last line: its result is shaped as `d`."""
    shape = re.match(r"d = (\S+) ", lines[-1])[1]
    (row,) = rows(computations + entry(*lines, f"g = {shape} all-reduce(d), {REDUCE}"), **more)
    return row.operands[0]


@pytest.mark.parametrize(
    "lines",
    [
        ("d = f32[8]{0} copy(w)",),
        ("b = bf16[8]{0} convert(w)", "d = bf16[2,4]{1,0} reshape(b)"),
        (
            "t = f32[8]{0} transpose(w), dimensions={0}",
            "s = f32[4]{0} slice(t), slice={[0:4]}",
            "d = f32[4] bitcast(s)",
        ),
        ("i = s32[] constant(1)", "d = f32[4]{0} dynamic-slice(w, i), dynamic_slice_sizes={4}"),
        ("z = f32[] constant(0)", "d = f32[16]{0} pad(w, z), padding=0_8"),
        ("d = f32[16]{0} concatenate(w, w), dimensions={0}",),
        ("c = (f32[8], f32[8], u32[]) copy-start(w)", "d = f32[8]{0} copy-done(c)"),
        ("c = ((f32[8]), f32[4], s32[]) slice-start(w), slice={[0:4]}", "d = f32[4]{0} slice-done(c)"),
        ('d = f32[8]{0} custom-call(w), custom_call_target="Sharding"',),
        ("t = (f32[8], f32[8]) tuple(k, w)", "d = f32[8]{0} get-tuple-element(t), index=1"),
        ("d = f32[8]{0} opt-barrier(w)",),
        ("d = f32[8]{0} fusion(w), kind=kLoop, calls=laid_out",),
        ("t = (f32[8], f32[8]) fusion(k, w), kind=kLoop, calls=two", "d = f32[8]{0} get-tuple-element(t), index=1"),
        ("d = f32[8]{0} call(w), to_apply=laid_out",),
    ],
)
def test_a_parameter_is_seen_through_what_only_lays_it_out(lines):
    laid_out = "laid_out {\n  q = f32[8]{0} parameter(0)\n  ROOT r = f32[8]{0} copy(q)\n}\n"
    two = "two {\n  q0 = f32[8]{0} parameter(0)\n  q1 = f32[8]{0} parameter(1)\n  n = f32[8]{0} negate(q0)\n"
    two += "  ROOT r2 = (f32[8], f32[8]) tuple(n, q1)\n}\n"
    assert carry(*lines, computations=laid_out + two).parameters == {0}


@pytest.mark.parametrize(
    "lines",
    [
        ("d = f32[8]{0} negate(w)",),
        ("d = f32[8]{0} add(w, k)",),
        ("i = s32[4,1]{1,0} constant({...})", "d = f32[4]{0} gather(w, i), offset_dims={}, slice_sizes={1}"),
        ("d = f32[2,8]{1,0} broadcast(w), dimensions={1}",),
        ('d = f32[8]{0} custom-call(w), custom_call_target="tpu_custom_call"',),
        ("d = f32[8]{0} fusion(w), kind=kLoop, calls=half",),
        ("t = (f32[8], f32[8]) tuple(k, w)", "n = f32[8]{0} get-tuple-element(t), index=1", "d = f32[8]{0} negate(n)"),
    ],
)
def test_what_is_computed_is_no_parameter(lines):
    half = "half {\n  q = f32[8]{0} parameter(0)\n  c = f32[8]{0} copy(q)\n  ROOT r = f32[8]{0} negate(c)\n}\n"
    one = carry(*lines, computations=half)
    assert one.parameters == frozenset()
    assert not one.constant


UPDATE = (
    "i = s32[] constant(0)",
    "u = f32[2]{0} slice(k), slice={[0:2]}",
    "d = f32[8]{0} dynamic-update-slice(w, u, i)",
)
SCATTER = (
    "i = s32[2,1]{1,0} constant({{0},{1}})",
    "u = f32[2]{0} slice(k), slice={[0:2]}",
    "d = f32[8]{0} scatter(w, i, u), to_apply=add",
)

SELECT = ("p = pred[8]{0} constant({...})", "u = f32[8]{0} negate(k)", "d = f32[8]{0} select(p, u, w)")


@pytest.mark.parametrize("lines", [UPDATE, SCATTER, SELECT])
def test_a_cache_is_also_seen_through_its_update_and_a_weight_is_not(lines):
    assert carry(*lines, caches=frozenset({0})).parameters == {0}
    assert carry(*lines, caches=frozenset({1})).parameters == frozenset()
    assert carry(*lines, header=", input_output_alias={ {}: (0, {}, may-alias) }").parameters == {0}
    assert carry(*lines).parameters == frozenset()


@pytest.mark.parametrize(
    ("lines", "constant"),
    [
        (("z = f32[] constant(0)", "d = f32[8]{0} broadcast(z), dimensions={}"), True),
        (("z = f32[8]{0} constant({...})", "d = f32[8]{0} copy(z)"), True),
        (("d = f32[8]{0} broadcast(k), dimensions={0}",), False),
        (("d = f32[8]{0} iota(), iota_dimension=0",), False),
        (
            (
                "z = f32[4]{0} constant({...})",
                "s = f32[4]{0} slice(k), slice={[0:4]}",
                "d = f32[8]{0} concatenate(z, s), dimensions={0}",
            ),
            False,
        ),
        (
            (
                "z = f32[] constant(0)",
                "b = f32[8]{0} broadcast(z), dimensions={}",
                "i = s32[] constant(0)",
                "u = f32[2]{0} slice(k), slice={[0:2]}",
                "d = f32[8]{0} dynamic-update-slice(b, u, i)",
            ),
            False,
        ),
    ],
)
def test_a_constant_is_seen_through_broadcasts(lines, constant):
    assert carry(*lines).constant is constant


LOOP = f"""body {{
  c = (s32[], f32[8], f32[8], f32[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  weight = f32[8]{{0}} get-tuple-element(c), index=1
  x = f32[8]{{0}} get-tuple-element(c), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  gathered = f32[32]{{0}} all-gather(weight), dimensions={{0}}, {ALL}
  reduced = f32[8]{{0}} all-reduce(x), {REDUCE}
  flag = f32[] get-tuple-element(c), index=3
  ROOT out = (s32[], f32[8], f32[8], f32[]) tuple(n, weight, reduced, flag)
}}
condition {{
  e = (s32[], f32[8], f32[8], f32[]) parameter(0)
  j = s32[] get-tuple-element(e), index=0
  end = s32[] constant(3)
  ROOT go = pred[] compare(j, end), direction=LT
}}
""" + entry(
    "zero = s32[] constant(0)",
    "h = f32[8]{0} negate(k)",
    "flag.1 = f32[] constant(0)",
    "first = (s32[], f32[8], f32[8], f32[]) tuple(zero, w, h, flag.1)",
    "loop = (s32[], f32[8], f32[8], f32[]) while(first), condition=condition, body=body",
    "r = f32[8]{0} get-tuple-element(loop), index=2",
)


def test_loop_carries_are_followed_both_ways():
    gathered, reduced = rows(LOOP)
    assert gathered.operands[0].parameters == {0}
    assert reduced.operands[0].parameters == frozenset()
    assert (gathered.reaches_root, reduced.reaches_root) == (False, True)
    assert gathered.from_parameters
    assert reduced.from_parameters


def test_branches_are_followed():
    text = "yes {\n  ROOT a = f32[8]{0} parameter(0)\n}\n"
    text += "no {\n  b = f32[8]{0} parameter(0)\n  ROOT m = f32[8]{0} negate(b)\n}\n"
    lines = (
        "go = pred[] rng-get-and-update-state()",
        "d = f32[8]{0} conditional(go, w, k), true_computation=yes, false_computation=no",
    )
    assert carry(*lines, computations=text).parameters == {0}


def test_the_result_may_reach_the_root_by_layout_alone():
    gather = f"g = f32[32]{{0}} all-gather(w), dimensions={{0}}, {ALL}"
    for last, reaches in (
        ("r = f32[4,8]{1,0} bitcast(g)", True),
        ("r = f32[32]{0} negate(g)", False),
        ("r = (f32[8], f32[32]) tuple(k, g)", True),
    ):
        assert rows(entry(gather, last))[0].reaches_root is reaches


def test_an_all_gather_of_what_a_reduce_scatter_made_says_so():
    scatter = f"rs = f32[2]{{0}} reduce-scatter(w), dimensions={{0}}, {REDUCE}"
    gather = f"all-gather(c), dimensions={{0}}, {ALL}"
    plain = rows(entry(scatter, "c = f32[2]{0} copy(rs)", f"g = f32[8]{{0}} {gather}"))
    assert [row.gathers_result_of for row in plain] == [None, "rs"]
    changed = rows(entry(scatter, "c = f32[2]{0} negate(rs)", f"g = f32[8]{{0}} {gather}"))
    assert [row.gathers_result_of for row in changed] == [None, None]


def test_only_dataflow_from_parameters_counts():
    reduce = f"r = u32[1]{{0}} all-reduce(b), {REDUCE}"
    barrier = ("o = u32[] constant(1)", "b = u32[1]{0} broadcast(o), dimensions={}", reduce)
    assert not rows(entry(*barrier))[0].from_parameters
    touched = ("v = u32[8]{0} bitcast-convert(w)", "b = u32[1]{0} slice(v), slice={[0:1]}", reduce)
    assert rows(entry(*touched))[0].from_parameters


def loop_control(inside, *, test="compare(j, end), direction=LT"):
    text = f"""body {{
  c = (s32[], pred[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  p = pred[] get-tuple-element(c), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  {inside}
  ROOT out = (s32[], pred[]) tuple(m, p)
}}
condition {{
  e = (s32[], pred[]) parameter(0)
  j = s32[] get-tuple-element(e), index=0
  end = s32[] constant(3)
  ROOT go = pred[] {test}
}}
""" + entry(
        "zero = s32[] constant(0)",
        "yes = pred[] constant(true)",
        "first = (s32[], pred[]) tuple(zero, yes)",
        "loop = (s32[], pred[]) while(first), condition=condition, body=body",
    )
    return [row.operands[0].steers_loop for row in rows(text)]


def test_predicates_and_counters_steer_loops():
    maximum = f"s32[] all-reduce(%s), {REDUCE}"
    assert loop_control(f"m = {maximum % 'n'}") == [True]  # it becomes the counter
    assert loop_control(f"f = {maximum % 'i'}\n  m = s32[] copy(n)") == [True]  # it is the counter
    assert loop_control(f"f = {maximum % 'one'}\n  m = s32[] copy(n)") == [False]
    assert loop_control(f"f = pred[] all-reduce(p), {REDUCE}\n  m = s32[] copy(n)") == [False]  # no condition reads it


def test_the_operands_of_a_combined_collective_keep_their_producers_scopes():
    lines = (
        'a = f32[8]{0} negate(w), metadata={op_name="jit(f)/layer.mlp.down/neg"}',
        'b = bf16[8]{0} convert(k), metadata={op_name="jit(f)/norm/convert"}',
        f'r = (f32[8], bf16[8]) all-reduce(a, b), {REDUCE}, metadata={{op_name="jit(f)/embed/psum"}}',
    )
    (row,) = rows(entry(*lines))
    assert row.scope == "embed"
    assert [(operand.scope, operand.dtype, operand.payload_bytes) for operand in row.operands] == [
        ("layer.mlp.down", "f32", 32),
        ("norm", "bf16", 16),
    ]
    assert (row.dtype, row.payload_bytes) == ("f32+bf16", 48)


def test_what_a_custom_call_compares_with_does_not_make_its_result():
    """So the CPU compiler writes the choice of the best experts."""
    greater = "greater {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
    greater += "  i = s32[] parameter(2)\n  j = s32[] parameter(3)\n  ROOT c = pred[] compare(a, b), direction=GT\n}\n"
    best = 't = (f32[2], s32[2]) custom-call(w), custom_call_target="TopK", called_computations={greater}'
    (row,) = rows(
        greater
        + entry(
            best,
            "d = f32[2]{0} get-tuple-element(t), index=0",
            f"g = f32[8]{{0}} all-gather(d), dimensions={{0}}, {ALL}",
        )
    )
    assert row.from_parameters
    assert row.operands[0].parameters == frozenset()
