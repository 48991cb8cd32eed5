"""Collectives between slices: a send and a receive, read as one row."""

import pytest

from compare.program.collectives import collectives
from compare.program.errors import HloError
from compare.program.text import read

AXES = {"slice": 2, "tp": 4}
"""Two slices of four devices: device = 4 x slice + place."""


def pair(kind, target, *, sent="f32[16]", received="f32[16]", rendezvous="a", more=""):
    attributes = (
        'is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime",'
        f'_xla_host_transfer_rendezvous="{rendezvous}",_xla_megascale_target={target},_xla_megascale_transfer_type="{kind}"}}{more}'
    )
    return (
        f"send.{rendezvous} = ({sent}, u32[], token[]) send(p, t), channel_id=1, {attributes}",
        f"recv.{rendezvous} = ({received}, u32[], token[]) recv(t), channel_id=2, {attributes}",
        f"sent.{rendezvous} = token[] send-done(send.{rendezvous}), channel_id=1, is_host_transfer=true",
        f"done.{rendezvous} = ({received}, token[]) recv-done(recv.{rendezvous}), channel_id=2, is_host_transfer=true",
        f"r.{rendezvous} = {received} get-tuple-element(done.{rendezvous}), index=0",
    )


def rows(*lines, axes=AXES, shape="f32[16]", header=", num_partitions=4"):
    body = "\n  ".join((f"p = {shape} parameter(0)", "t = token[] after-all()", *lines[:-1], "ROOT " + lines[-1]))
    return collectives(read(f"HloModule m{header}\nENTRY main {{\n  {body}\n}}\n"), axes)


BOTH = ((0, 4), (1, 5), (2, 6), (3, 7))


@pytest.mark.parametrize(
    ("kind", "xla", "payload", "wire"),
    [
        ("all-reduce", "ALL_REDUCE", 64, 64),  # 2(2-1)/2 x 64
        ("reduce-scatter", "REDUCE_SCATTER", 64, 32),
        ("all-to-all", "ALL_TO_ALL", 64, 32),
        ("all-gather", "ALL_GATHER", 128, 64),  # of the receive's result
    ],
)
@pytest.mark.parametrize(
    "target", ['"{1,2}x{0:3}"', "{{100000,200000},{100001,200001},{100002,200002},{100003,200003}}"]
)
def test_a_send_and_its_receive_are_one_row(kind, xla, payload, wire, target):
    received = "f32[32]" if kind == "all-gather" else "f32[16]"
    (row,) = rows(*pair(xla, target, received=received))
    assert (row.name, row.kind, row.axes, row.network, row.form) == ("send.a", kind, "slice", "dcn", "megascale")
    assert row.groups == BOTH
    assert (row.payload_bytes, row.wire_bytes, row.step_wire_bytes) == (payload, wire, wire)


def test_one_to_one_is_a_permute_of_pairs():
    forward = "{{100000->200000},{100001->200001},{100002->200002},{100003->200003}}"
    (row,) = rows(*pair("ONE_TO_ONE", forward))
    assert (row.kind, row.axes, row.groups) == ("collective-permute", "slice", BOTH)
    assert row.wire_bytes == 32  # 64 x 4 senders / 8 devices
    assert row.device_bytes == (64, 64, 64, 64, 0, 0, 0, 0)
    (across,) = rows(*pair("ONE_TO_ONE", "{{100000->200001}}"))
    assert (across.axes, across.wire_bytes) == ("slice,tp", 8)


def test_an_all_gather_within_a_slice_stands_for_one_in_each():
    groups = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
    (row,) = rows(f"g = f32[64] all-gather(p), dimensions={{0}}, {groups}")
    assert (row.axes, row.network, row.groups, row.wire_bytes) == ("tp", "ici", ((0, 1, 2, 3),), 192)
    assert len(row.device_bytes) == 8


def test_without_axes_the_targets_say_how_many_slices_there_are():
    (row,) = rows(*pair("ALL_REDUCE", '"{1,2}x{0:3}"'), axes={})
    assert (row.axes, row.wire_bytes, len(row.device_bytes)) == ("?", 64, 8)


@pytest.mark.parametrize(("axes", "over"), [(AXES, "slice"), ({}, "?")])
def test_where_the_header_is_silent_the_targets_say_how_many_slices_there_are(axes, over):
    """A serialized module may leave out for how many devices it is."""
    inside = "s = f32[64] all-gather(p), channel_id=9, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
    found = rows(*pair("ALL_REDUCE", '"{1,2}x{0:3}"'), inside, axes=axes, header="")
    assert [(row.axes, row.groups) for row in found] == [(over, BOTH), ("tp" if axes else "?", ((0, 1, 2, 3),))]
    assert {len(row.device_bytes) for row in found} == {8}


def test_a_branch_on_the_slice_runs_on_that_slice_alone():
    text = """HloModule m, num_partitions=4
first {
  a = f32[16] parameter(0)
  ROOT b = f32[16] collective-permute(a), channel_id=1, source_target_pairs={{0,1}}
}
second {
  c = f32[16] parameter(0)
  ROOT d = f32[16] collective-permute(c), channel_id=1, source_target_pairs={{2,3},{1,1}}
}
ENTRY main {
  p = f32[16] parameter(0)
  here = s32[] custom-call(), custom_call_target="SliceId"
  ROOT r = f32[16] conditional(here, p, p), branch_computations={first, second}
}
"""
    one, other = collectives(read(text), AXES)
    assert one.device_executions == (1, 1, 1, 1, 0, 0, 0, 0)
    assert other.device_executions == (0, 0, 0, 0, 1, 1, 1, 1)
    # One execution sends 64 bytes in both slices, 128/8; in a step only one slice does.
    assert (one.wire_bytes, one.step_wire_bytes) == (16, 8)
    assert (other.wire_bytes, other.step_wire_bytes) == (16, 8)


def test_pairs_with_the_same_name_are_told_apart_by_their_order():
    twice = (
        *pair("ALL_REDUCE", '"{1,2}x{0:3}"'),
        *(line.replace(".a", ".b") for line in pair("ALL_GATHER", '"{1,2}x{0:3}"')),
    )
    assert [row.kind for row in rows(*twice)] == ["all-reduce", "all-gather"]


def test_what_goes_to_the_host_is_no_collective():
    host = 'is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="h"}'
    assert rows(f"s = (f32[16], u32[], token[]) send(p, t), channel_id=1, {host}", "r = token[] send-done(s)") == []


def test_a_send_of_a_pipelined_permute_names_its_own_pairs():
    own = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2}}}"
    lines = (
        f"s = (f32[16], u32[], token[]) send(p, t), channel_id=1, {own}",
        f"v = (f32[16], u32[], token[]) recv(t), channel_id=1, {own}",
        "r = (f32[16], token[]) recv-done(v), channel_id=1",
    )
    (row,) = rows(*lines, axes={"tp": 4})
    assert (row.kind, row.form, row.axes, row.wire_bytes) == ("collective-permute", "start-done", "tp", 32)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (pair("ALL_REDUCE", '"{1,2}x{0:3}"')[:1], "receive"),
        (pair("ALL_REDUCE", '"{1,2}x{0:3}"')[1:2], "send"),
        (pair("SHOUT", '"{1,2}x{0:3}"'), "SHOUT"),
        (pair("ALL_REDUCE", '"one and two"'), "one and two"),
        (pair("ALL_REDUCE", '"{1,3}x{0:3}"'), "slice 3"),
        (pair("ALL_REDUCE", '"{1,2}x{0:4}"'), "place 4"),
    ],
)
def test_what_cannot_be_placed_names_its_line(lines, said):
    with pytest.raises(HloError, match=rf"^line \d+: .*{said}"):
        rows(*lines)
