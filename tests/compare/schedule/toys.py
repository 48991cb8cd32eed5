"""Tiny scheduled programs for tp4pp2 on v5e:2x4, and a chip with round rates: what they take is arithmetic.

Devices 0 to 3 are the first stage, on a line of 4 chips without a link between its ends; 4 to 7 the second, beside it.
An all-reduce of P bytes over a line puts 2·3/4·P on its links; a permute between the stages puts P on one.
"""

import re

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.schedule.hardware import Hardware
from compare.schedule.schedule import model_step
from compare.timeline.timeline import Timeline
from meshes.mesh_argument import read_mesh

ROUND = Hardware(
    cycle_ns=1.0,
    flops_per_ns=1000.0,
    copy_cycles_per_byte=0.0,
    window_cycles=0.0,
    hbm_bytes_per_ns=100.0,
    link_bytes_per_ns=10.0,
    chip_bytes_per_ns=100.0,
    launch_ns=100.0,
    hop_ns=10.0,
    dcn_launch_ns=1000.0,
    dcn_bytes_per_ns=1.0,
)
"""A cycle is 1 ns; 100 bytes a ns through the memory, 10 over a link."""

STAGES = "[2,4]<=[8]"
SHIFT = "{{0,4},{1,5},{2,6},{3,7}}"
BACK = "{{4,0},{5,1},{6,2},{7,3}}"
X = "f32[1000]{0:S(1)}"
"""4000 bytes in on-chip memory."""

ALL_REDUCE_NS = 100 + 6 * 10 + 4000 * 1.5 / 10
"""Launch, 2·3 steps, and 2·3/4 of the bytes."""
PERMUTE_NS = 100 + 10 + 4000 / 10

_COMPUTE = re.compile(r"compute\(([\w.]+), (\d+)\)")


def program(entry: str, *, more: str = "", head: str = "num_partitions=8") -> str:
    """A module.  In `entry` and `more`, `compute(x, 500)` is a fusion that the compiler takes 500 cycles for."""
    text = f"""HloModule toy, is_scheduled=true, {head}

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

work {{
  p = {X} parameter(0)
  ROOT q = {X} negate(p)
}}
{more}
ENTRY main {{
  x = {X} parameter(0)
{entry}
}}
"""
    return _COMPUTE.sub(
        r'fusion(\1), kind=kLoop, calls=work, backend_config={"window_config":{"estimated_cycles":"\2"}}', text
    )


def loop(body: str, *, trips: int) -> str:
    """Computations of a loop whose body takes and makes `y`; `while(start)` of `carried(x)` runs it."""
    carry = f"(s32[], {X})"
    return f"""
test {{
  carry = {carry} parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  n = s32[] constant({trips})
  ROOT less = pred[] compare(i, n), direction=LT
}}

body {{
  carry.1 = {carry} parameter(0)
  i.1 = s32[] get-tuple-element(carry.1), index=0
  y = {X} get-tuple-element(carry.1), index=1
  one = s32[] constant(1)
  next = s32[] add(i.1, one)
{body}
  ROOT again = {carry} tuple(next, last)
}}
"""


LOOPED = f"""
  zero = s32[] constant(0)
  start = (s32[], {X}) tuple(zero, x)
  ROOT around = (s32[], {X}) while(start), condition=test, body=body
"""


def all_reduce(of: str, *, groups: str = STAGES, config: str = "") -> str:
    more = f", backend_config={config}" if config else ""
    return f"all-reduce({of}), channel_id=1, replica_groups={groups}, use_global_device_ids=true, to_apply=sum{more}"


def run(text: str, *, mesh: str = "tp4pp2", hardware: Hardware = ROUND) -> Timeline:
    plan = read_mesh(mesh)
    module = read(text)
    return model_step(module, collectives(module, plan.mesh.split_axes), plan, hardware=hardware)


def step_ns(timeline: Timeline) -> float:
    return float(timeline.steps["duration_ns"].max())


def comms(timeline: Timeline, device: int = 0) -> list[tuple[str, float, float, float]]:
    """(instruction, start, duration, exposed) of every communication of the class that a device is in."""
    (shown,) = (first for first, alike in timeline.stands_for.items() if device in alike)
    rows = timeline.events[(timeline.events["role"] == "communication") & (timeline.events["device"] == shown)]
    columns = (rows[name].tolist() for name in ("hlo_op", "start_ns", "duration_ns", "exposed_ns"))
    return list(zip(*columns, strict=True))


_MARKS = "_xla_megascale_target={{100000->200000},{100001->200001},{100002->200002},{100003->200003}}"
_MEGA = f'frontend_attributes={{_xla_host_transfer_rendezvous="a",{_MARKS},_xla_megascale_transfer_type="ONE_TO_ONE"}}'
BETWEEN_SLICES = f"""
  t = token[] after-all()
  s = ({X}, u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true, {_MEGA}
  r = ({X}, u32[], token[]) recv(t), channel_id=2, is_host_transfer=true, {_MEGA}
  sd = token[] send-done(s), channel_id=1, is_host_transfer=true
  rd = ({X}, token[]) recv-done(r), channel_id=2, is_host_transfer=true
  ROOT y = {X} get-tuple-element(rd), index=0
"""
"""An entry on two slices: a send of 4000 bytes to the other one."""
