"""The work of measured events, from the program that ran: by hand."""

import pandas as pd
import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.profile.join.event_work import add_work
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.timeline import COMMUNICATION, COMPUTE, CONTAINER, PART
from meshes.mesh_argument import read_mesh
from tests.compare.timeline.build import comm, compute, steps, timeline

PROGRAM = """HloModule m, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[8,16]{1,0} parameter(0)
  w = f32[16,4]{1,0} parameter(1)
  y = f32[8,4]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/layer.mlp.up/dot"}
  n = f32[8,4]{1,0} negate(y)
  odd = f32[8,4]{1,0} dot(x, w)
  s = (f32[8,4]{1,0:S(1)}, f32[8,4]{1,0}, u32[]) copy-start(n)
  d = f32[8,4]{1,0:S(1)} copy-done(s)
  ROOT r = f32[8,4]{1,0} all-reduce(n), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=sum
}
"""  # noqa: E501
ROW = {name: 0.0 for name in WORK_COLUMNS}


def worked(*events, plan="tp4@v5e:2x2"):
    module = read(PROGRAM)
    marks = steps((0, 100), devices=sorted({event["device"] for event in events}))
    where = read_mesh(plan) if plan else None
    return add_work(timeline(list(events), marks), module, collectives(module, {"tp": 4}), where)


def event(name, role=COMPUTE, **more):
    return compute(0, 10, name=name, role=role) | {"hlo_op": name} | more


@pytest.mark.parametrize(
    ("name", "work", "scope"),
    [
        ("y", {"matrix_flops": 2 * 8 * 16 * 4, "memory_bytes": 4 * (128 + 64 + 32)}, "layer.mlp.up"),
        ("n.clone", {"vector_ops": 32, "memory_bytes": 4 * 64}, "layer.mlp.up"),  # by its instruction, and the nearest
        ("s", {"memory_bytes": 4 * 32}, "layer.mlp.up"),  # read from the memory, written on the chip
        ("d", {}, "layer.mlp.up"),
    ],
)
def test_an_operation_has_the_work_and_scope_of_its_instruction(name, work, scope):
    (row,) = worked(event(name)).events.to_dict("records")
    assert {column: row[column] for column in WORK_COLUMNS} == ROW | work
    assert row["scope"] == scope


def test_containers_parts_and_the_second_part_of_an_operation_have_none():
    late = event("y") | {"name": "end: y"}
    events = worked(event("y", CONTAINER), event("y", PART), late).events
    assert events[list(WORK_COLUMNS)].eq(0).all(axis=None)


def test_what_the_program_does_not_tell_is_unknown_and_counted_in_a_note():
    result = worked(event("y"), event("elsewhere"), event("odd"))
    rows = result.events.set_index("hlo_op")
    assert rows.loc[["elsewhere", "odd"], list(WORK_COLUMNS)[:3]].isna().all(axis=None)
    assert result.notes == ("the work of 2 of 3 operations that compute is not known from the program",)


def reduce_on(device):
    return comm(10, 30, device=device) | {"hlo_op": "r", "collective": "r", "role": COMMUNICATION}


def test_a_collective_has_the_bytes_that_its_device_sends_over_links():
    """Four chips of a square are a ring: 2·3/4 of 128 bytes from each, over one link."""
    events = worked(*(reduce_on(device) for device in range(4))).events
    assert events["ici_byte_hops"].tolist() == [2 * 3 / 4 * 128] * 4
    assert events["dcn_bytes"].tolist() == [0] * 4


def test_off_the_tpu_the_work_on_networks_is_unknown():
    events = worked(reduce_on(0), event("y"), plan=None).events.set_index("hlo_op")
    assert pd.isna(events.loc["r", "ici_byte_hops"])
    assert events.loc["y", "ici_byte_hops"] == 0
