"""The arithmetic of instructions: by hand, by trying every position, and against libtpu's own count of ten programs."""

import gzip
import itertools
import json

import numpy as np
import pytest

from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Computation
from compare.hlo.text.module import read
from compare.schedule.work.arithmetic import Arithmetic, ArithmeticCounts
from tests.places import EXAMPLE

TEXT = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
inside {
  q = f32[4,8]{1,0} parameter(0)
  r = f32[8,16]{1,0} parameter(1)
  dot.1 = f32[4,16]{1,0} dot(q, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  again = f32[4,16]{1,0} exponential(dot.1)
  moved = f32[16,4]{1,0} transpose(again), dimensions={1,0}
  ROOT twice = f32[16,4]{1,0} add(moved, moved)
}
outer {
  o0 = f32[4,8]{1,0} parameter(0)
  o1 = f32[8,16]{1,0} parameter(1)
  inner = f32[16,4]{1,0} fusion(o0, o1), kind=kOutput, calls=inside
  ROOT less = f32[16,4]{1,0} negate(inner)
}
ENTRY e {
  x = f32[4,8]{1,0} parameter(0)
  y = f32[8,16]{1,0} parameter(1)
  z = f32[3,4,8]{2,1,0} parameter(2)
  w = f32[3,8,5]{2,1,0} parameter(3)
  zero = f32[] constant(0)
  plain = f32[4,16]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  batch = f32[3,4,5]{2,1,0} dot(z, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  fused = f32[16,4]{1,0} fusion(x, y), kind=kOutput, calls=inside
  nested = f32[16,4]{1,0} fusion(x, y), kind=kOutput, calls=outer
  total = f32[4]{0} reduce(x, zero), dimensions={1}, to_apply=sum
  pooled = f32[4,4]{1,0} reduce-window(x, zero), window={size=1x2 stride=1x2}, to_apply=sum
  spread = f32[4,8]{1,0} reduce-window(x, zero), window={size=1x15 pad=0_0x7_7}, to_apply=sum
  sorted = f32[4,8]{1,0} sort(x), dimensions={1}, to_apply=sum
  half = bf16[4,8]{1,0} convert(x)
  copied = f32[4,8]{1,0} copy(x)
  wide = f32[4,8,2]{2,1,0} broadcast(x), dimensions={0,1}
  kernel = f32[4,8]{1,0} custom-call(x), custom_call_target="tpu_custom_call", backend_config={"cost_estimate":{"flops":"640","bytes_accessed":"8"}}
  ROOT unknown = f32[4,8]{1,0} custom-call(x), custom_call_target="tpu_custom_call"
}
"""  # noqa: E501
ITEMS = {item.name: item for item in read(TEXT).entry}


@pytest.mark.parametrize(
    ("name", "matrix_flops", "vector_ops"),
    [
        ("plain", 2 * 4 * 8 * 16, 0),
        ("batch", 2 * 3 * 4 * 8 * 5, 0),
        ("fused", 2 * 4 * 8 * 16, 2 * 64),  # the exponential and the sum; the transpose computes nothing
        ("nested", 2 * 4 * 8 * 16, 3 * 64),
        ("total", 0, 4 * 7),
        ("pooled", 0, 16),  # of two values each
        ("spread", 0, 4 * 7),  # every window holds the row: one sum, written eight times
        ("sorted", 0, 32 * 3),  # of 8 values, log2 is 3
        ("half", 0, 32),
        ("copied", 0, 0),
        ("wide", 0, 0),
        ("kernel", 640, 0),
        ("unknown", 0, 0),
    ],
)
def test_by_hand(name, matrix_flops, vector_ops):
    assert ArithmeticCounts().of(ITEMS[name]) == Arithmetic(matrix_flops, vector_ops)


def convolution(left, right, result, *, window, labels, more=""):
    dims = (",".join(map(str, dims)) for dims in (left, right, result))
    one, two, out = (f"f32[{text}]" for text in dims)
    text = (
        f"HloModule m\nENTRY e {{\n  a = {one} parameter(0)\n  b = {two} parameter(1)\n"
        f"  ROOT c = {out} convolution(a, b){window}, dim_labels={labels}{more}\n}}\n"
    )
    return ArithmeticCounts().of(read(text).entry.root)


@pytest.mark.parametrize(
    ("left", "stride", "low", "high", "spread", "gap", "kernel"),
    list(itertools.product([5, 8], [1, 2], [0, 3], [-1, 2], [1, 2], [1, 3], [1, 3])),
)
def test_a_convolution_counts_where_its_window_lies_on_values(left, stride, low, high, spread, gap, kernel):
    """Against the padded, dilated operand itself: ones where values are, zeros elsewhere; batch 2, 3 features to 4."""
    row = np.zeros((left - 1) * spread + 1)
    row[::spread] = 1
    row = np.pad(row, (low, max(high, 0)))
    row = row[: len(row) + min(high, 0)]
    reach = (kernel - 1) * gap + 1
    places = range(0, len(row) - reach + 1, stride)
    pairs = sum(int(row[at + gap * k]) for at in places for k in range(kernel))
    window = f", window={{size={kernel} stride={stride} pad={low}_{high} lhs_dilate={spread} rhs_dilate={gap}}}"
    counted = convolution((2, left, 3), (kernel, 3, 4), (2, len(places), 4), window=window, labels="b0f_0io->b0f")
    assert counted == Arithmetic(matrix_flops=2 * 2 * 3 * 4 * pairs)


def test_a_batched_product_as_libtpu_writes_it_counts_as_the_product():
    """Attention scores in the example: 2 sequences × 2 key heads × 4 queries each × 1024 × 1024 × 128.

    Sequences and key heads are spatial dims of a dilated operand, so that each meets its own alone.
    """
    scores = convolution(
        (2, 1024, 2, 4, 128),
        (2, 1024, 2, 128, 1),
        (2, 2, 1024, 4, 1024),
        window=", window={size=2x2x1 lhs_dilate=2x2x1}",
        labels="0b12f_0o1i2->01b2f",
    )
    assert scores.matrix_flops == 2 * 2 * 2 * 4 * 1024 * 1024 * 128


def test_groups_of_features_and_of_the_batch_divide_the_work():
    whole = convolution((2, 5, 6), (1, 6, 4), (2, 5, 4), window=", window={size=1}", labels="b0f_0io->b0f")
    halves = convolution(
        (2, 5, 6),
        (1, 3, 4),
        (2, 5, 4),
        window=", window={size=1}",
        labels="b0f_0io->b0f",
        more=", feature_group_count=2",
    )
    batches = convolution(
        (2, 5, 6), (1, 6, 4), (1, 5, 4), window=", window={size=1}", labels="b0f_0io->b0f", more=", batch_group_count=2"
    )
    assert (whole.matrix_flops, halves.matrix_flops, batches.matrix_flops) == (480, 240, 240)


def test_labels_that_do_not_name_the_dims_are_refused_with_the_line():
    with pytest.raises(HloError, match=r"line 5: cannot read dim_labels"):
        convolution((2, 5, 6), (1, 6, 4), (2, 5, 4), window="", labels="bf_io->bf")


def test_a_window_that_cannot_be_read_is_refused_with_the_line():
    with pytest.raises(HloError, match=r"line 5: cannot read its window"):
        convolution((2, 5, 6), (1, 6, 4), (2, 5, 4), window=", window={size=1 stride=0}", labels="b0f_0io->b0f")


def counted_once(computation: Computation, counts: ArithmeticCounts) -> Arithmetic:
    """As libtpu's cost analysis counts: the body of a loop once."""
    total = Arithmetic()
    for item in computation:
        inside = item.callees if item.opcode in ("while", "call", "conditional") else []
        total += sum((counted_once(part, counts) for part in inside), Arithmetic()) if inside else counts.of(item)
    return total


@pytest.mark.parametrize(
    "about", sorted(EXAMPLE.glob("*/*/tpu*/about.json")), ids=lambda file: "/".join(file.parts[-4:-1])
)
def test_libtpus_own_count_of_a_program_lies_within_one_per_cent(about):
    """Its `flops` are those of products and of most elementwise work: of loops the body once."""
    stated = json.loads(about.read_text())["cost"]["flops"]
    text = gzip.decompress(about.with_name("optimized.hlo.gz").read_bytes()).decode()
    counts = counted_once(read(text).entry, ArithmeticCounts())
    assert counts.matrix_flops <= stated * 1.01
    assert stated <= (counts.matrix_flops + counts.vector_ops) * 1.01
    assert counts.matrix_flops == pytest.approx(stated, rel=0.01)
