"""Values that the text alone decides: each against numpy or plain Python, for every device and iteration."""

import numpy as np
import pytest

from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.counts.integer_ops import NotUnderstood
from compare.hlo.dataflow.dataflow import CallContext
from compare.hlo.devices.groups import DeviceNumbering
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read


def value(*lines, partitions=8, replicas=1, slices=1, computations=""):
    """The last of the lines, as a list over devices (one number if it is the same on all)."""
    body = "\n".join(f"  {line}" for line in (*lines[:-1], "ROOT " + lines[-1]))
    module = read(f"HloModule m\n{computations}\nENTRY main {{\n{body}\n}}\n")
    values = Evaluator(DeviceNumbering(replicas, partitions, slices))
    found = values.value(CallContext(module.entry), module.entry.root)
    return found.tolist() if found.ndim > 1 or found.size > 1 else found.item()


A, B = -7, 3


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ("add", A + B),
        ("subtract", A - B),
        ("multiply", A * B),
        ("divide", -2),  # towards zero
        ("remainder", -1),  # the sign of the dividend
        ("maximum", B),
        ("minimum", A),
        ("and", A & B),
        ("or", A | B),
        ("xor", A ^ B),
        ("shift-left", A << B),
        ("shift-right-arithmetic", A >> B),
        ("shift-right-logical", (A % 2**32) >> B),
    ],
)
def test_integer_operations_follow_xla(operation, result):
    assert value(f"a = s32[] constant({A})", f"b = s32[] constant({B})", f"r = s32[] {operation}(a, b)") == result


def test_integers_wrap_and_nothing_divides_by_zero():
    assert value("a = u8[] constant(200)", "r = u8[] add(a, a)") == 144
    assert value("a = s32[] constant(5)", "z = s32[] constant(0)", "r = s32[] divide(a, z)") == -1
    assert value("a = s32[] constant(5)", "z = s32[] constant(0)", "r = s32[] remainder(a, z)") == 5
    assert value("a = u32[] constant(5)", "b = u32[] constant(40)", "r = u32[] shift-right-logical(a, b)") == 0


def test_unsigned_numbers_compare_as_unsigned():
    minus = "a = s32[] constant(-1)"
    one = "one = u32[] constant(1)"
    assert value(minus, one, "u = u32[] convert(a)", "r = pred[] compare(u, one), direction=GT") is True
    assert value(minus, "o = s32[] constant(1)", "r = pred[] compare(a, o), direction=GT") is False


def test_a_device_knows_its_place():
    assert value("r = u32[] partition-id()", partitions=4) == [0, 1, 2, 3]
    assert value("r = u32[] replica-id()", replicas=2, partitions=2) == [0, 0, 1, 1]
    assert value('r = s32[] custom-call(), custom_call_target="SliceId"', slices=2, partitions=2) == [0, 0, 1, 1]
    assert value("r = u32[] partition-id()", slices=2, partitions=2) == [0, 1, 0, 1]


def test_a_table_is_read_at_each_devices_place():
    table = "t = s32[4]{0} constant({10, 11, 12, 13})"
    part = "p = u32[] partition-id()"
    piece = "d = s32[1]{0} dynamic-slice(t, p), dynamic_slice_sizes={1}"
    assert value(table, part, piece, "r = s32[] bitcast(d)", partitions=4) == [10, 11, 12, 13]
    # A window that would stick out is moved inside: the start of one of 2 in 4 is at most 2.
    wide = "r = s32[2]{0} dynamic-slice(t, p), dynamic_slice_sizes={2}"
    assert value(table, part, wide, partitions=4) == [[10, 11], [11, 12], [12, 13], [12, 13]]


def test_a_table_of_each_device_is_read_too():
    lines = (
        "p = u32[] partition-id()",
        "b = u32[3]{0} broadcast(p), dimensions={}",
        "i = u32[3]{0} iota(), iota_dimension=0",
    )
    moved = (*lines, "s = u32[3]{0} add(b, i)", "r = u32[1]{0} dynamic-slice(s, p), dynamic_slice_sizes={1}")
    assert value(*moved, partitions=3) == [[0 + 0], [1 + 1], [2 + 2]]


def test_elements_are_moved_as_xla_moves_them():
    matrix = "m = s32[2,3]{1,0} constant({ {0, 1, 2}, {3, 4, 5} })"
    assert value(matrix, "r = s32[3,2]{1,0} transpose(m), dimensions={1,0}") == [[[0, 3], [1, 4], [2, 5]]]
    assert value(matrix, "r = s32[6]{0} reshape(m)") == [[0, 1, 2, 3, 4, 5]]
    assert value(matrix, "r = s32[2,2]{1,0} slice(m), slice={[0:2], [0:3:2]}") == [[[0, 2], [3, 5]]]
    assert value(matrix, "r = s32[4,3]{1,0} concatenate(m, m), dimensions={0}") == [[[0, 1, 2], [3, 4, 5]] * 2]
    # A bitcast reads memory again: column-major 3x2 of the same six numbers.
    assert value(matrix, "r = s32[3,2]{0,1} bitcast(m)") == [[[0, 3], [1, 4], [2, 5]]]
    assert value(matrix, "r = s32[3,2]{1,0} bitcast(m)") == [[[0, 1], [2, 3], [4, 5]]]


def test_select_and_clamp_choose_for_each_device():
    lines = ("p = u32[] partition-id()", "i = s32[] convert(p)", "one = s32[] constant(1)", "two = s32[] constant(2)")
    assert value(*lines, "r = s32[] clamp(one, i, two)", partitions=4) == [1, 1, 2, 2]
    less = "l = pred[] compare(i, two), direction=LT"
    assert value(*lines, less, "r = s32[] select(l, one, i)", partitions=4) == [1, 1, 2, 3]
    assert value(*lines, less, "n = pred[] not(l)", "r = s32[] convert(n)", partitions=4) == [0, 0, 1, 1]


def test_fusions_and_calls_are_entered():
    double = "double {\n  x = u32[] parameter(0)\n  ROOT y = u32[] add(x, x)\n}\n"
    assert value(
        "p = u32[] partition-id()", "r = u32[] fusion(p), kind=kLoop, calls=double", partitions=3, computations=double
    ) == [0, 2, 4]
    assert value(
        "p = u32[] partition-id()", "r = u32[] call(p), to_apply=double", partitions=3, computations=double
    ) == [0, 2, 4]


def test_a_branch_whose_predicate_is_known_gives_its_value():
    one = (
        "b{0} {{\n  x{0} = u32[] parameter(0)\n  c{0} = u32[] constant({0})\n  ROOT y{0} = u32[] add(x{0}, c{0})\n}}\n"
    )
    branches = "".join(one.format(number) for number in (0, 10, 20))
    lines = (
        "p = u32[] partition-id()",
        "i = s32[] convert(p)",
        "r = u32[] conditional(i, p, p, p), branch_computations={b0, b10, b20}",
    )
    assert value(*lines, partitions=5, computations=branches) == [0, 11, 22, 23, 24]  # past the end: the last


@pytest.mark.parametrize(
    "line",
    [
        "r = s32[] parameter(0)",
        "r = f32[] constant(1)",
        "r = s32[] rng-get-and-update-state()",
        "r = s32[20]{0} constant({...})",
    ],
)
def test_data_floats_and_elided_tables_are_not_understood(line):
    with pytest.raises(NotUnderstood):
        value(line)


LOOP = """HloModule m
body {{
  c = (s32[], s32[], s32[], s32[5]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  stage = s32[] get-tuple-element(c), index=1
  before = s32[] get-tuple-element(c), index=2
  table = s32[5]{{0}} get-tuple-element(c), index=3
  one = s32[] constant(1)
  next = s32[] add(i, one)
  at = s32[1]{{0}} dynamic-slice(table, i), dynamic_slice_sizes={{1}}
  t = s32[] bitcast(at)
  sum = s32[] add(t, stage)
  ROOT out = (s32[], s32[], s32[], s32[5]) tuple(next, stage, sum, table)
}}
condition {{
  c.1 = (s32[], s32[], s32[], s32[5]) parameter(0)
  i.1 = s32[] get-tuple-element(c.1), index=0
  end = s32[] constant(5)
  ROOT go = pred[] compare(i.1, end), direction=LT
}}
ENTRY main {{
  zero = s32[] constant(0)
  nine = s32[] constant(9)
  p = u32[] partition-id()
  s = s32[] convert(p)
  line = s32[5]{{0}} iota(), iota_dimension=0
  first = (s32[], s32[], s32[], s32[5]) tuple(zero, s, nine, line)
  ROOT w = (s32[], s32[], s32[], s32[5]) while(first), condition=condition, body=body
}}
""".format()


def in_loop(name):
    module = read(LOOP)
    values = Evaluator(DeviceNumbering(1, 2))
    loop = module.entry.root
    body = module.computations["body"]
    found = values.value(CallContext(module.entry).inside(loop, body), body.named(name))
    return np.broadcast_to(found, (2, 5)).tolist()


def test_in_a_loop_a_value_is_known_for_every_device_and_iteration():
    assert in_loop("i") == [[0, 1, 2, 3, 4]] * 2  # the counter
    assert in_loop("stage") == [[0] * 5, [1] * 5]  # carried, never changed
    assert in_loop("t") == [[0, 1, 2, 3, 4]] * 2  # an iota read at the counter
    assert in_loop("sum") == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
    assert in_loop("before") == [[9, 0, 1, 2, 3], [9, 1, 2, 3, 4]]  # what the iteration before handed on


def test_a_long_chain_of_additions_is_refused_and_not_a_crash():
    lines = ["x0 = s32[] constant(1)", *(f"x{at} = s32[] add(x{at - 1}, x{at - 1})" for at in range(1, 2000))]
    with pytest.raises(NotUnderstood):
        value(*lines)


@pytest.mark.parametrize(
    ("line", "takes"),
    [
        ("negate(a, a)", "negate takes 1 operand:"),
        ("add(a)", "add takes 2 operands:"),
        ("select(a, a)", "select takes 3 operands:"),
    ],
)
def test_an_operation_of_other_operands_is_an_error_as_in_xla(line, takes):
    with pytest.raises(HloError, match=f"^line 5: {takes}"):
        value("a = s32[] constant(1)", f"r = s32[] {line}")
