"""Collectives between slices: a send and a receive, read as one row."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

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


def rows(*lines, axes=AXES, shape="f32[16]", header=", num_partitions=4", device_ids=()):
    body = "\n  ".join((f"p = {shape} parameter(0)", "t = token[] after-all()", *lines[:-1], "ROOT " + lines[-1]))
    return collectives(read(f"HloModule m{header}\nENTRY main {{\n  {body}\n}}\n"), axes, device_ids=device_ids)


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


def test_a_target_names_devices_where_groups_name_places():
    """A libtpu program of a dp2tp4 mesh over two v5e:2x2, whose places 0, 1, 2, 3 are devices 3, 1, 0, 2."""
    ids = (100003, 100001, 100000, 100002, 200003, 200001, 200000, 200002)
    forward = "{{100003->200003},{100001->200001},{100000->200000},{100002->200002}}"
    inside = "g = f32[16] collective-permute(p), channel_id=1, source_target_pairs={{0,1},{2,3}}"
    over, within = rows(*pair("ONE_TO_ONE", forward), inside, device_ids=ids)
    assert (over.axes, over.groups) == ("slice", BOTH)
    assert (within.axes, within.groups) == ("tp", ((0, 1), (2, 3)))
    assert within.mesh_groups == ((0, 1), (2, 3), (4, 5), (6, 7))
    # As libtpu spells it when the slices are filled in different orders.
    mixed = (100003, 100001, 100000, 100002, 200000, 200002, 200001, 200003)
    turned = "{{100003,200000},{100001,200002},{100000,200001},{100002,200003}}"
    (row,) = rows(*pair("ALL_TO_ALL", turned), device_ids=mixed)
    assert (row.axes, row.groups) == ("slice", BOTH)


def test_devices_of_a_slice_need_not_follow_each_other():
    """dp2pp2tp2 with the stages over two slices: devices 0, 1, 4, 5 are on the first."""
    axes = {"dp": 2, "pp": 2, "tp": 2}
    ids = (100000, 100001, 200000, 200001, 100002, 100003, 200002, 200003)
    text = "g = f32[16] collective-permute(p), channel_id=1, source_target_pairs={{0,2},{1,3}}"
    shift = "{{100000->200000},{100001->200001},{100002->200002},{100003->200003}}"
    over, within = rows(*pair("ONE_TO_ONE", shift), text, axes=axes, device_ids=ids)
    assert (over.axes, over.groups) == ("pp", ((0, 2), (1, 3), (4, 6), (5, 7)))
    assert (within.axes, within.mesh_groups) == ("dp", ((0, 4), (1, 5), (2, 6), (3, 7)))
    assert over.device_bytes == (64, 64, 0, 0, 64, 64, 0, 0)


def test_the_steps_of_a_collective_over_several_slices_say_what_they_are_a_part_of():
    """How libtpu sums over an axis that lies over two slices: within each, between them, within each."""
    groups = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, dimensions={0}"
    lines = (
        f"scattered = f32[4] reduce-scatter(p), {groups}, to_apply=sum",
        *pair("ALL_REDUCE", '"{1,2}x{0:3}"', sent="f32[4]", received="f32[4]"),
        f"gathered = f32[16] all-gather(r.a), {groups}",
    )
    add = "x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)"
    text = f"HloModule m, num_partitions=4\nsum {{\n  {add}\n}}\n"
    body = "\n  ".join(("p = f32[16] parameter(0)", "t = token[] after-all()", *lines[:-1], "ROOT " + lines[-1]))
    body = body.replace("send(p,", "send(scattered,")
    found = collectives(read(f"{text}ENTRY main {{\n  {body}\n}}\n"), {"tp": 8})
    assert [(row.kind, row.axes, row.network, row.part_of) for row in found] == [
        ("reduce-scatter", "tp:sub", "ici", "tp"),
        ("all-reduce", "tp:sub", "dcn", "tp"),
        ("all-gather", "tp:sub", "ici", "tp"),
    ]
    # 64 bytes over 8 devices: 2 (8 - 1)/8 x 64, whatever the steps.
    assert sum(row.step_wire_bytes for row in found) == 48 + 16 + 48 == 2 * 7 * 64 // 8


def test_what_is_part_of_no_axis_says_nothing():
    """Over dp x tp, with dp over the slices: the steps are the axes themselves."""
    assert [row.part_of for row in rows(*pair("ALL_REDUCE", '"{1,2}x{0:3}"'))] == [""]
    pairs = "g = f32[16] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true"
    assert [(row.axes, row.part_of) for row in rows(pairs)] == [("tp:sub", "")]


@pytest.mark.parametrize("ids", [(100000, 200000), (100000,) * 8, (*range(100000, 100005), *range(200000, 200003))])
def test_ids_that_are_not_those_of_equal_slices_are_refused(ids):
    with pytest.raises(HloError, match="the program is for 2 slices of 4"):
        rows(*pair("ALL_REDUCE", '"{1,2}x{0:3}"'), device_ids=ids)


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
        (pair("ALL_REDUCE", '"{1,2}x{0:4}"'), "device 4 of slice 1"),
        (pair("ONE_TO_ONE", "{{100000->200000->100000}}"), "unknown spelling"),
        (pair("ONE_TO_ONE", "{{100000,200000,100001}}"), "has a row that is none"),
    ],
)
def test_what_cannot_be_placed_names_its_line(lines, said):
    with pytest.raises(HloError, match=rf"^line \d+: .*{said}"):
        rows(*lines)


@pytest.mark.parametrize(("word", "reducer"), [("SUM", "add"), ("MAX", "maximum"), ("NAND", "")])
def test_a_sum_between_slices_says_how_it_joins(word, reducer):
    lines = [
        line.replace("_xla_megascale_target", f'_xla_megascale_reduce_operation="{word}",_xla_megascale_target')
        for line in pair("ALL_REDUCE", '"{1,2}x{0:3}"')
    ]
    assert rows(*lines)[0].reducer == reducer


def of_pairs(pairs, *, header="", channel=1):
    attributes = f"channel_id={channel}, frontend_attributes={{_xla_send_recv_source_target_pairs={pairs}}}"
    return rows(
        f"s = (f32[16], u32[], token[]) send(p, t), {attributes}",
        "sd = token[] send-done(s), channel_id=1",
        f"r = (f32[16], u32[], token[]) recv(t), {attributes}",
        "rd = (f32[16], token[]) recv-done(r), channel_id=1",
        "y = f32[16] get-tuple-element(rd), index=0",
        axes={},
        header=header,
    )


def test_the_pairs_of_a_send_are_those_of_a_permute():
    """XLA gives them its channel: ids of partitions, in each of the replicas."""
    (row,) = of_pairs("{{0,1},{1,2}}", header=", num_partitions=4")
    assert (row.groups, row.device_bytes) == (((0, 1), (1, 2)), (64, 64, 0, 0))
    (row,) = of_pairs("{{0,1}}", header=", replica_count=2, num_partitions=2")
    assert (row.groups, row.device_bytes) == (((0, 1), (2, 3)), (64, 0, 64, 0))
    (row,) = of_pairs("{{0,1}}", header=", replica_count=2, num_partitions=2", channel=0)  # 0 is none, of a send
    assert (row.groups, row.device_bytes) == (((0, 2), (1, 3)), (64, 64, 0, 0))


def test_a_text_without_counts_has_the_devices_that_its_sends_name():
    (row,) = of_pairs("{{0,1},{1,2}}")
    assert (row.groups, row.device_bytes) == (((0, 1), (1, 2)), (64, 64, 0))


@pytest.mark.parametrize("pairs", ["{{0,1},{1,2}}", "{{0,3}}", "{{3,0}}"])
def test_a_send_to_a_device_that_the_program_has_not_is_refused(pairs):
    largest = max(int(digit) for digit in pairs if digit.isdigit())
    with pytest.raises(
        HloError, match=rf"^line 5: its pairs name partition {largest}, and the program has 1 replica of 2"
    ):
        of_pairs(pairs, header=", num_partitions=2")
