"""What the tests of joined profiles share: lines of HLO as TPU profiles have them, and programs to go with them."""

import pytest

from compare.profile.join.profile import read_profile
from tests.compare.timeline.build import trace_summary
from tests.compare.timeline.spaces import data

AXES = {"data": 2, "tensor": 2}
TENSOR, DATA = "{{0,1},{2,3}}", "{{0,2},{1,3}}"
F32 = "f32[1000]{0:T(1024)}"

FUSION = f"%fusion.2 = {F32} fusion({F32} %p), kind=kLoop, calls=%fused_computation"
WHILE = f"%while.5 = (s32[], {F32}) while((s32[], {F32}) %tuple.1), condition=%cond, body=%body"
BROADCAST = f"%broadcast.7 = {F32} broadcast(f32[]{{:T(128)}} %c), dimensions={{}}"


def collective(kind, number, groups=TENSOR):
    return f"%{kind}.{number} = {F32} {kind}({F32} %fusion.2), channel_id=1, replica_groups={groups}, to_apply=%add"


def start(number, groups=TENSOR):
    return f"%all-reduce-start.{number} = {F32} all-reduce-start({F32} %fusion.2), replica_groups={groups}"


def done(number):
    return f"%all-reduce-done.{number} = {F32} all-reduce-done({F32} %all-reduce-start.{number})"


REDUCE = collective("all-reduce", 1)


PROGRAM = """HloModule jit_f, is_scheduled=true, num_partitions=4

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

scattered {
  q = f32[1000]{0} parameter(0)
  inner.1 = f32[1000]{0} all-reduce(q), channel_id=2, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=add
  partition = u32[] partition-id()
  at = s32[] convert(partition)
  ROOT part = f32[500]{0} dynamic-slice(inner.1, at), dynamic_slice_sizes={500}
}

ENTRY main {
  p = f32[1000]{0} parameter(0)
  twice = f32[1000]{0} add(p, p)
  begun = f32[1000]{0} all-reduce-start(twice), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=add, metadata={op_name="jit(f)/layer.mlp.down/psum"}
  fusion.9 = f32[500]{0} fusion(p), kind=kCustom, calls=scattered
  over = f32[1000]{0} all-reduce-done(begun)
  ROOT out = (f32[1000]{0}, f32[500]{0}) tuple(over, fusion.9)
}
"""  # noqa: E501


def serialize(text=PROGRAM, *, number_by_place=b""):
    """An HloProto, as profiles carry programs.  placed: its module's device assignment, serialized."""
    hlo = pytest.importorskip("jaxlib._hlo")
    module = hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return data(1, module + (data(15, number_by_place) if number_by_place else b""))


def timeline(space, tmp_path, axes=AXES, **more):
    return read_profile([space.write(tmp_path)], axes=axes, **more)


def per_step(space, tmp_path, axes=AXES, **more):
    return trace_summary(timeline(space, tmp_path, axes, **more))["per_step"]


def comms(timeline, *columns):
    """The communications, as tuples of columns."""
    rows = timeline.events[timeline.events["role"] == "communication"]
    return [tuple(row) for row in rows[list(columns)].itertuples(index=False)]
