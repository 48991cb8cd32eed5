"""One collective over several axes, or slices, and the same in steps: equal by hand arithmetic, or no equal at all."""

from itertools import permutations

import pytest

from compare.diff.diff_report import diff_values
from compare.diff.lines import equivalent_words, verdict
from compare.diff.matching import match
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.files import read_file
from compare.hlo.text.module import read
from tests.compare.verdict.toy_hlo import AXES, HEAD, OVER, rows, wire
from tests.places import CORPUS

OVER["both"] = "{{0,1,2,3,4,5,6,7}}"

# bf16: of [256, 1024], 524,288 bytes, over all eight devices.
SUM = wire("all-reduce", "bf16[256,1024]", over="both")
GATHER = wire("all-gather", "bf16[32,1024]", over="both", result="bf16[256,1024]")
SCATTER = wire("reduce-scatter", "bf16[256,1024]", over="both", result="bf16[32,1024]")
# First over the four of `tensor`, of the whole; then over the two of `data`, of the quarter that is left: and back.
SCATTERS = [
    wire("reduce-scatter", "bf16[256,1024]", result="bf16[64,1024]"),
    wire("reduce-scatter", "bf16[64,1024]", over="data", result="bf16[32,1024]"),
]
GATHERS = [
    wire("all-gather", "bf16[32,1024]", over="data", result="bf16[64,1024]"),
    wire("all-gather", "bf16[64,1024]", result="bf16[256,1024]"),
]
BETWEEN = wire("all-reduce", "bf16[64,1024]", over="data")

IN_STEPS = [
    ("a gather", GATHER, GATHERS),
    ("a scatter", SCATTER, SCATTERS),
    ("a sum of the parts", SUM, [SCATTERS[0], BETWEEN, GATHERS[1]]),
    ("a sum scattered to the end", SUM, [*SCATTERS, *GATHERS]),
    (
        "the other axis first",
        GATHER,
        [
            wire("all-gather", "bf16[32,1024]", result="bf16[128,1024]"),
            wire("all-gather", "bf16[128,1024]", over="data", result="bf16[256,1024]"),
        ],
    ),
]


@pytest.mark.parametrize(("single", "steps"), [row[1:] for row in IN_STEPS], ids=[row[0] for row in IN_STEPS])
def test_one_over_two_axes_is_its_steps_over_one_after_the_other(single, steps):
    # 7/8 of the payload, for a sum twice: 458,752 or 917,504 bytes; 3/4 of all and 1/2 of a quarter are as much.
    assert sum(row.step_wire_bytes for row in rows(*steps)) == rows(single)[0].step_wire_bytes
    for order in permutations(steps):
        for diff in (match(rows(single), rows(*order)), match(rows(*order), rows(single))):
            assert diff.is_empty
            (equivalent,) = diff.equivalents
            assert {len(equivalent.a), len(equivalent.b)} == {1, len(steps)}
            assert equivalent.delta_bytes == equivalent.delta_dcn_bytes == 0


def test_each_step_is_of_one_only():
    diff = match(rows(GATHER, GATHER), rows(*GATHERS, GATHERS[0]))
    assert len(diff.equivalents) == 1
    assert len(diff.differences) == 2


NOT_THE_SAME = [
    ("the parts are summed whole", SUM, [SCATTERS[0], wire("all-reduce", "bf16[256,1024]", over="data"), GATHERS[1]]),
    ("over one axis twice", SUM, [SCATTERS[0], wire("all-reduce", "bf16[64,1024]"), GATHERS[1]]),
    ("over one axis only", GATHER, [GATHERS[1]]),
    ("another type", GATHER, [GATHERS[0].replace("bf16", "f32"), GATHERS[1]]),
    ("twice over two of four", GATHER, [GATHERS[0].replace(OVER["data"], "{{0,1},{2,3},{4,5},{6,7}}"), GATHERS[1]]),
    ("in another place", GATHER, [gather.replace("mlp.down", "attention.qkv") for gather in GATHERS]),
    ("no sum is gathered from weights", SUM, "weights"),
]


@pytest.mark.parametrize(("single", "steps"), [row[1:] for row in NOT_THE_SAME], ids=[row[0] for row in NOT_THE_SAME])
def test_what_only_looks_like_it_is_not_the_same(single, steps):
    other = rows(*steps) if steps != "weights" else collectives(read(WEIGHTS), AXES)
    for diff in (match(rows(single), other), match(other, rows(single))):
        assert diff.equivalents == ()
        assert not diff.is_empty


TENSOR = f"channel_id=1, replica_groups={OVER['tensor']}, use_global_device_ids=true"
WEIGHTS = f"""{HEAD}
ENTRY main {{
  w = bf16[64,1024] parameter(0)
  p = bf16[256,1024] parameter(1)
  x = bf16[256,1024] negate(p)
  s = bf16[64,1024] reduce-scatter(x), {TENSOR}, dimensions={{0}}, to_apply=add
  y = bf16[64,1024] negate(s)
  a = bf16[64,1024] all-reduce(y), channel_id=2, replica_groups={OVER["data"]}, use_global_device_ids=true, to_apply=add
  ROOT g = bf16[256,1024] all-gather(w), {TENSOR}, dimensions={{0}}
}}
"""

ONE_SLICE = """HloModule one, is_scheduled=true, num_partitions=16

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  p = f32[131072] parameter(0)
  x = f32[131072] negate(p)
  ROOT c = f32[131072] all-reduce(x), channel_id=1, replica_groups={}, to_apply=add
}
"""


def test_the_same_over_another_network_is_a_change():
    axes = {"dcn": 2, "tensor": 8}
    between = collectives(read_file(CORPUS / "dcn_psum_both.hlo.gz"), axes)[1]
    pairs = "groups=[8,2]<=[2,8]T(1,0), use_global_device_ids=true"
    text = ONE_SLICE.replace("131072", "16384").replace("groups={}", pairs)
    (gather,) = match(collectives(read(text), axes), [between]).differences
    assert gather.changes == ("network",)


def test_a_sum_over_two_slices_is_the_same_sum_and_what_goes_between_them_is_told():
    """libtpu's steps of `psum` over both axes, on two slices of eight chips, against the sum on one of sixteen."""
    axes = {"dcn": 2, "tensor": 8}
    steps = collectives(read_file(CORPUS / "dcn_psum_both.hlo.gz"), axes)
    single = collectives(read(ONE_SLICE), axes)
    assert [row.network for row in (*single, *steps)] == ["ici", "ici", "dcn", "ici"]
    diff = match(single, steps)
    (gather,) = diff.equivalents
    assert diff.differences == ()
    # Of 524,288 bytes an eighth is left between the slices, which a sum of two sends once.
    assert (gather.delta_bytes, gather.delta_dcn_bytes) == (0, 65_536)
    assert not diff.is_empty
    values = diff_values(diff)
    assert equivalent_words(values)[0].endswith("; +65.5 kB a step over dcn")
    assert verdict(values) == "No difference but +65.5 kB a step over dcn: 1 equivalent in another form."
