"""The same communication in another form: each pair of programs below moves the same, by hand arithmetic."""

from pathlib import Path

import pytest

from compare.diff.matching import match
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.files import read_file
from compare.hlo.text.module import read
from tests.compare.verdict.toy_hlo import AXES, BACK, GATHER, HEAD, HOP, OVER, RING, SCATTER, SUM, program, rows, wire

WINDOWED = Path(__file__).parent / "windowed"
RING["data"] = "{{0,4},{1,5},{2,6},{3,7},{4,0},{5,1},{6,2},{7,3}}"
OTHER = wire("all-reduce", "bf16[64]", over="data", scope="norm")
ELSEWHERE = wire("all-gather", "bf16[64,1024]", result="bf16[256,1024]", scope="layer.attention.qkv")

SAME = [
    # An all-reduce of P sends 2(n-1)/n P; a scatter and a gather of it (n-1)/n P each.
    ("scatter and gather", [SUM], [SCATTER, GATHER]),
    ("whoever asks for the gather", [SUM], [SCATTER, ELSEWHERE]),
    ("twice", [SUM, SUM], [SCATTER, GATHER, SCATTER, GATHER]),
    # Over four devices a gather of P is three hops of P/4, whichever way around.
    ("a windowed einsum", [GATHER], [HOP, HOP, BACK]),
    ("the scatter's", [SCATTER], [HOP, BACK, BACK]),
    ("a sum whose scatter is windowed", [SUM], [HOP, HOP, BACK, GATHER]),
    ("a sum, all of it windowed", [SUM], [HOP, HOP, BACK, HOP, HOP, BACK]),
]


@pytest.mark.parametrize(("a", "b"), [row[1:] for row in SAME], ids=[row[0] for row in SAME])
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_the_same_in_another_form_is_no_difference(a, b, turned):
    a, b = ([OTHER, *b, OTHER], [OTHER, *a, OTHER]) if turned else ([OTHER, *a, OTHER], [OTHER, *b, OTHER])
    diff = match(rows(*a), rows(*b))
    assert diff.differences == ()
    assert diff.is_empty
    assert all(equivalent.delta_bytes == 0 for equivalent in diff.equivalents)


def test_hops_beyond_those_that_a_gather_needs_are_told_in_bytes():
    diff = match(rows(GATHER), rows(HOP, HOP, BACK, BACK))
    (equivalent,) = diff.equivalents
    assert len(equivalent.b) == 4
    assert equivalent.delta_bytes == 64 * 1024 * 2
    assert diff.differences == ()
    assert not diff.is_empty


def test_hops_over_another_axis_or_of_another_size_are_not_those_of_a_gather():
    small = wire("collective-permute", "bf16[32,1024]", over="tensor")
    assert match(rows(GATHER), rows(HOP, HOP)).equivalents == ()
    assert match(rows(GATHER), rows(small, small, small)).equivalents == ()
    over_data = wire("all-gather", "bf16[128,1024]", over="data", result="bf16[256,1024]")
    assert match(rows(over_data), rows(HOP, HOP, BACK)).equivalents == ()


def test_permutes_that_leave_a_device_without_a_part_are_no_gather():
    """A shift from the first half to the second, twice, sends as much as a gather over `data`; nothing comes back."""
    over_data = wire("all-gather", "bf16[64,1024]", over="data", result="bf16[128,1024]")
    ring = wire("collective-permute", "bf16[64,1024]", over="data")
    shift = ring.replace(",{4,0},{5,1},{6,2},{7,3}", "")
    assert shift != ring
    assert sum(row.step_wire_bytes for row in rows(shift, shift)) == rows(over_data)[0].step_wire_bytes
    assert match(rows(over_data), rows(ring)).is_empty
    assert match(rows(over_data), rows(shift, shift)).equivalents == ()


def test_a_scatter_of_another_part_of_the_model_is_not_that_of_a_sum():
    elsewhere = wire("reduce-scatter", "bf16[256,1024]", result="bf16[64,1024]", scope="layer.attention.out")
    assert match(rows(SUM), rows(elsewhere, GATHER)).equivalents == ()


def test_a_scatter_without_its_gather_is_no_sum():
    diff = match(rows(SUM), rows(SCATTER))
    assert diff.equivalents == ()
    assert diff.differences[0].changes == ("kind",)


NAMED = 'all-reduce(x, y), metadata={op_name="layer.mlp.down/dot_general"},'
TENSOR = f"channel_id=1, replica_groups={OVER['tensor']}, use_global_device_ids=true"
COMBINED = f"""{HEAD}
ENTRY main {{
  x = bf16[256,1024] parameter(0)
  y = bf16[64] parameter(1)
  c = (bf16[256,1024], bf16[64]) all-reduce(x, y), {TENSOR}, to_apply=add
  ROOT end = bf16[] constant(0)
}}
"""


def test_arrays_that_a_combiner_has_joined_are_those_that_it_joined():
    joined = collectives(read(COMBINED), AXES)
    apart = rows(SUM, wire("all-reduce", "bf16[64]"))
    for pair in ((joined, apart), (apart, joined)):
        diff = match(*pair)
        assert diff.is_empty
        assert [equivalent.how for equivalent in diff.equivalents] == ["the same arrays, combined differently"]
    assert not match(joined, rows(SUM)).is_empty


def test_beside_arrays_that_are_combined_otherwise_one_more_is_one_line():
    joined = collectives(read(COMBINED), AXES)
    small = wire("all-reduce", "bf16[64]")
    for more in (SUM, small, wire("all-reduce", "bf16[512]", scope="norm")):
        for order in ([more, SUM, small], [SUM, small, more]):
            diff = match(joined, rows(*order))
            assert [(difference.what, len(difference.b)) for difference in diff.differences] == [("only in b", 1)]
            assert len(diff.equivalents) == 1


def test_arrays_of_other_parts_of_the_model_are_not_those_that_were_combined():
    joined = collectives(read(COMBINED.replace("all-reduce(x, y),", NAMED)), AXES)
    assert joined[0].scope == "layer.mlp.down"
    elsewhere = [wire("all-reduce", shape, scope="layer.attention.out") for shape in ("bf16[256,1024]", "bf16[64]")]
    assert match(joined, rows(*elsewhere)).equivalents == ()


LOOP = f"""{HEAD}
body {{
  p = (s32[], bf16[256,1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = bf16[256,1024] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  c = bf16[256,1024] all-reduce(x), {TENSOR}, to_apply=add, metadata={{op_name="layer.mlp.down/dot_general"}}
  ROOT r = (s32[], bf16[256,1024]) tuple(next, c)
}}

condition {{
  p = (s32[], bf16[256,1024]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT more = pred[] compare(i, n), direction=LT
}}

ENTRY main {{
  x = bf16[256,1024] parameter(0)
  zero = s32[] constant(0)
  begin = (s32[], bf16[256,1024]) tuple(zero, x)
  w = (s32[], bf16[256,1024]) while(begin), condition=condition, body=body
  ROOT end = bf16[] constant(0)
}}
"""


def test_a_loop_is_its_copies():
    diff = match(collectives(read(LOOP), AXES), rows(SUM, SUM, SUM))
    assert diff.is_empty
    (equivalent,) = diff.equivalents
    assert (len(equivalent.a), len(equivalent.b)) == (1, 3)
    (fewer,) = match(collectives(read(LOOP), AXES), rows(SUM, SUM)).differences[:1]
    assert fewer.what == "changed"


def test_beside_a_loop_and_its_copies_one_more_is_one_line():
    loop = collectives(read(LOOP), AXES)
    for diff in (match(loop, rows(*[SUM] * 4)), match(rows(*[SUM] * 4), loop)):
        assert [len(equivalent.a) + len(equivalent.b) for equivalent in diff.equivalents] == [4]
        assert [len(difference.a) + len(difference.b) for difference in diff.differences] == [1]


def test_the_toy_programs_say_what_they_are_said_to_say():
    (row,) = rows(SUM)
    assert (row.payload_bytes, row.wire_bytes) == (524_288, 786_432)
    assert [entry.form for entry in rows(HOP, BACK)] == ["windowed-einsum"] * 2
    assert program(SUM).count("all-reduce(") == 1


def test_a_real_program_with_and_without_its_windowed_einsum():
    """x @ up @ down under sequence parallelism, compiled by libtpu for v5e:2x4, the second with the form switched off.

    Of the scatter's [8, 2048, 4096] bf16 in each of two replicas a hop is an eighth, 16,777,216 bytes.
    """
    forms = [collectives(read_file(WINDOWED / f"{name}.hlo.gz"), AXES) for name in ("default", "off")]
    for diff, sign in ((match(*forms), -1), (match(*reversed(forms)), 1)):
        (equivalent,) = diff.equivalents
        assert diff.differences == ()
        assert {row.kind for row in (*equivalent.a, *equivalent.b)} == {"reduce-scatter", "collective-permute"}
        # Five hops where three would do: the first of each chain sends zeros.
        assert equivalent.delta_bytes == sign * 2 * 16_777_216


def test_copies_of_a_loop_s_collective_that_have_lost_their_names_are_its_copies():
    nameless = SUM.partition(", metadata")[0]
    near = wire("all-reduce", "bf16[8]", scope="norm")
    diff = match(collectives(read(LOOP), AXES), rows(SUM, nameless, nameless, near))
    assert [len(equivalent.b) for equivalent in diff.equivalents] == [3]
    assert [difference.first.scope for difference in diff.differences] == ["norm"]
