"""Loops whose condition is no plain comparison: a 64-bit counter, as the TPU compiler splits it into halves."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read

PROGRAM = """\
HloModule scan, is_scheduled=true, num_partitions=4

%sum (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}}

%condition (c: (u32[], u32[], f32[8])) -> pred[] {{
  %c = (u32[], u32[], f32[8]) parameter(0)
  %low = u32[] get-tuple-element(%c), index=0
  %high = u32[] get-tuple-element(%c), index=1
  %zero = u32[] constant(0)
  %bound = u32[] constant({bound})
  %szero = s32[] constant(0)
  %shigh = s32[] bitcast-convert(%high)
  %below = pred[] compare(%shigh, %szero), direction=LT
  %same = pred[] compare(%high, %zero), direction=EQ
  %less = pred[] compare(%low, %bound), direction=LT
  %both = pred[] and(%same, %less)
  ROOT %go = pred[] or(%below, %both)
}}

%body (p: (u32[], u32[], f32[8])) -> (u32[], u32[], f32[8]) {{
  %p = (u32[], u32[], f32[8]) parameter(0)
  %l = u32[] get-tuple-element(%p), index=0
  %h = u32[] get-tuple-element(%p), index=1
  %x = f32[8] get-tuple-element(%p), index=2
  %one = u32[] constant({step})
  %next = u32[] add(%l, %one)
  %over = pred[] compare(%next, %l), direction=LT
  %carry = u32[] convert(%over)
  %up = u32[] add(%h, %carry)
  %all-reduce = f32[8] all-reduce(%x), channel_id=1, replica_groups={{}}, to_apply=%sum
  ROOT %t = (u32[], u32[], f32[8]) tuple(%next, %up, %all-reduce)
}}

ENTRY %main (arg: f32[8], n: u32[]) -> f32[8] {{
  %arg = f32[8] parameter(0)
  %n = u32[] parameter(1)
  %begin = u32[] constant({start})
  %nothing = u32[] constant(0)
  %init = (u32[], u32[], f32[8]) tuple({first}, %nothing, %arg)
  %while = (u32[], u32[], f32[8]) while(%init), condition=%condition, body=%body
  ROOT %out = f32[8] get-tuple-element(%while), index=2
}}
"""


def executions(*, start=0, bound=16, step=1, first="%begin"):
    rows = collectives(read(PROGRAM.format(start=start, bound=bound, step=step, first=first)), {"tp": 4})
    return rows[0].executions, rows[0].executions_are


@pytest.mark.parametrize(
    ("numbers", "trips"),
    [
        ({}, 16),
        ({"start": 4}, 12),
        ({"step": 3}, 6),
        ({"bound": 0}, 0),
        # The low half overflows: 2^32 − 2, 2^32 − 1, then the high half is 1 and the loop ends.
        ({"start": 2**32 - 2, "bound": 2**32 - 1}, 1),
    ],
)
def test_a_counter_in_two_halves_is_one_counter(numbers, trips):
    assert executions(**numbers) == (trips, "exact")


def test_a_start_that_is_data_leaves_the_count_unknown():
    assert executions(first="%n") == (None, "unknown")


def test_a_loop_that_never_ends_is_unknown():
    assert executions(step=0) == (None, "unknown")
