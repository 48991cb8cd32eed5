"""Whole rows, each number worked out by hand, and what every program must keep."""

import json
from fractions import Fraction

import pytest

from compare.hlo.collective import PUBLIC
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
AXES = {"data": 2, "tensor": 4}


def rows(*lines, axes=AXES, header=", num_partitions=8"):
    body = "\n  ".join(("p = bf16[4,100]{1,0:T(8,128)(2,1)} parameter(0)", *lines[:-1], "ROOT " + lines[-1]))
    return collectives(read(f"HloModule m{header}\n{ADD}ENTRY main {{\n  {body}\n}}\n"), axes)


REDUCE = (
    "r = bf16[4,100]{1,0:T(8,128)(2,1)} all-reduce(p), channel_id=1, replica_groups=[2,4]<=[8], "
    "use_global_device_ids=true, to_apply=add, "
    'metadata={op_name="jit(f)/layer.mlp.down/psum" source_file="m.py" source_line=3}'
)


def test_padding_is_not_sent_and_a_row_has_its_line():
    (row,) = rows(REDUCE)
    assert (row.dtype, row.payload_bytes) == ("bf16", 800)  # 400 elements of two bytes, without those of the tiles
    assert tuple(json.loads(json.dumps(row.public()))) == PUBLIC
    assert (row.line, row.text) == (9, "ROOT " + REDUCE)


def test_means_are_rounded_once_half_up():
    # A group of 3 sends 2 x 2/3 x 800 = 1066.67 from each; over 8 devices 400 exactly.
    (row,) = rows(REDUCE.replace("[2,4]<=[8]", "{{0,1,2}}"))
    assert row.wire_bytes == 400
    assert row.device_bytes[:4] == (Fraction(3200, 3),) * 3 + (0,)
    # One sender of 4 bytes among 8 devices is 0.5, which is rounded up.
    (half,) = rows(
        "c = s32[] constant(1)", "r = s32[] collective-permute(c), channel_id=1, source_target_pairs={{0,1}}"
    )
    assert (half.payload_bytes, half.wire_bytes) == (4, 1)


def test_a_ragged_exchange_counts_at_its_most():
    ragged = "bf16[4,100]{1,0} ragged-all-to-all(p, p, o, o, o, o), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}"
    (row,) = rows("o = s32[4]{0} constant({0, 0, 0, 0})", "r = " + ragged)
    assert (row.payload_bytes, row.wire_bytes) == (800, 600)
    assert (row.executions, row.executions_are) == (1, "upper-bound")


def test_without_axes_everything_else_is_still_read():
    (row,) = rows(REDUCE, axes={})
    assert (row.axes, row.wire_bytes) == ("?", 1200)


@pytest.mark.parametrize("header", ["", ", replica_count=8"])
def test_devices_may_be_counted_by_the_header_the_axes_or_the_ids(header):
    (named,) = rows(REDUCE, header=header)
    (plain,) = rows(REDUCE, header=header, axes={})
    assert named.wire_bytes == plain.wire_bytes == 1200
    assert len(plain.device_bytes) == 8


def test_a_program_of_unsaid_size_is_as_large_as_its_largest_id():
    (one,) = rows(REDUCE.replace("[2,4]<=[8], use_global_device_ids=true", "{{0}}"), axes={}, header="")
    assert (one.wire_bytes, len(one.device_bytes)) == (0, 1)
    shift = "r = f32[2] collective-permute(q), source_target_pairs={{0,5}}"
    (shift,) = rows("q = f32[2] constant({1, 2})", shift, axes={}, header="")
    assert len(shift.device_bytes) == 6


def test_groups_outside_the_mesh_are_refused():
    with pytest.raises(HloError, match=r"^line 9: .*device 7.*4 devices"):
        rows(REDUCE, header="", axes={"tensor": 4})
    with pytest.raises(HloError, match="6 devices"):
        rows(REDUCE, axes={"tensor": 6})


def test_a_program_without_collectives_has_no_rows():
    assert rows("n = bf16[4,100]{1,0} negate(p)") == []


def test_a_thousand_nested_values_are_no_deep_recursion():
    chain = [f"c{at} = bf16[4,100]{{1,0}} copy({'p' if at == 0 else f'c{at - 1}'})" for at in range(5000)]
    (row,) = rows(*chain, REDUCE.replace("all-reduce(p)", "all-reduce(c4999)").replace("layer.mlp.down", "x"))
    assert row.operands[0].parameters == {0}
    assert row.from_parameters
    assert row.scope == "?"


@pytest.mark.parametrize(
    ("spelled", "said"),
    [
        (REDUCE.replace("[2,4]<=[8]", "groups of four"), "groups of four"),
        (REDUCE.replace("all-reduce(p)", "all-reduce(q)"), "'q'"),
        (REDUCE.replace("all-reduce(p)", "all-reduce(p"), "cut"),
        (REDUCE.replace("to_apply=add", "to_apply=nowhere"), "nowhere"),
    ],
)
def test_what_is_not_understood_names_its_line(spelled, said):
    with pytest.raises(HloError, match=rf"^line 9: .*{said}"):
        rows(spelled)
