"""Names that libtpu drops in programs of several slices, put back."""

import re

from compare.compile.op_names import RestoredNames, restore_names
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read

GROUPS = "replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=sum"
SUM = "sum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n"
TABLES = """
FileNames
1 "model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

"""


def program(*lines, tables="", partitions=4):
    body = "\n  ".join(("p = f32[64] parameter(0)", *lines[:-1], "ROOT " + lines[-1]))
    return f"HloModule m, num_partitions={partitions}\n{tables}{SUM}ENTRY main {{\n  {body}\n}}\n"


def instruction(opcode, name, *, channel=1, scope, of="p"):
    what = f'metadata={{op_name="jit(f)/{scope}/dot" stack_frame_id=1}}'
    return f"{name} = f32[64] {opcode}({of}), channel_id={channel}, {GROUPS}, {what}"


def transfer(rendezvous):
    attributes = (
        'is_host_transfer=true, frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime",'
        f'_xla_host_transfer_rendezvous="{rendezvous}",_xla_megascale_target="{{1,2}}x{{0:1}}",'
        '_xla_megascale_transfer_type="ALL_REDUCE"}, backend_config={"a":1}'
    )
    return (
        "t = token[] after-all()",
        f"send = (f32[64], u32[], token[]) send(p, t), channel_id=8, {attributes}",
        f"recv = (f32[64], u32[], token[]) recv(t), channel_id=9, {attributes}",
        "done = (f32[64], token[]) recv-done(recv), channel_id=9",
        "r = f32[64] get-tuple-element(done), index=0",
    )


def scopes(text):
    return [(row.name, row.scope, row.source_line) for row in collectives(read(text), {"slice": 2, "tp": 2})]


def test_a_collective_within_slices_is_known_by_its_channel():
    before = program(
        instruction("all-reduce", "a", channel=3, scope="layer.attention.qkv"),
        instruction("all-reduce", "b", channel=4, scope="layer.mlp.down", of="a"),
        tables=TABLES,
    )
    after = program(
        "a.1 = f32[64] all-reduce(p), channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum",
        "b.1 = f32[64] all-reduce(a.1), channel_id=4, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum",
        partitions=2,
    )
    found = restore_names(after, before)
    assert (found.lost, found.restored) == (2, 2)
    assert scopes(found.text) == [("a.1", "layer.attention.qkv", "model.py:7"), ("b.1", "layer.mlp.down", "model.py:7")]


def test_a_send_between_slices_is_known_by_its_rendezvous():
    before = program(instruction("all-reduce", "psum.7", scope="layer.attention.core"), tables=TABLES)
    found = restore_names(program(*transfer("psum.7_0"), partitions=2), before)
    assert (found.lost, found.restored) == (2, 2)  # the send and its receive
    assert scopes(found.text) == [("send", "layer.attention.core", "model.py:7")]
    assert found.text.count(', backend_config={"a":1}') == 2


def test_one_that_could_be_several_stays_without_a_name():
    """Every collective of a shard_map has channel 1."""
    before = program(
        instruction("all-reduce", "a", scope="layer.attention.qkv"),
        instruction("all-reduce", "b", scope="layer.mlp.down", of="a"),
        tables=TABLES,
    )
    after = program(
        "a.1 = f32[64] all-reduce(p), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum",
        partitions=2,
    )
    assert restore_names(after, before) == RestoredNames(after, lost=1, restored=0)


def test_a_channel_of_one_that_was_sent_between_slices_says_nothing_of_another():
    """Its number is free, and given to what the compiler makes next."""
    before = program(instruction("all-reduce", "psum.7", channel=3, scope="layer.attention.core"), tables=TABLES)
    after = program(
        *transfer("psum.7_0"),
        "b = f32[64] all-reduce(r), channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum",
        partitions=2,
    )
    found = restore_names(after, before)
    assert (found.lost, found.restored) == (3, 2)
    assert scopes(found.text)[0] == ("send", "layer.attention.core", "model.py:7")
    assert (
        "b = f32[64] all-reduce(r), channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum\n"
        in found.text
    )


def twin_of(text, *channels):
    """The same program with these channels, one after the other."""
    numbers = iter(channels)
    return re.sub(r"channel_id=\d+", lambda _: f"channel_id={next(numbers)}", text)


def test_a_twin_with_a_channel_for_each_tells_them_apart():
    """Both sums of a shard_map have channel 1; in the twin they have 1 and 2."""
    before = program(
        instruction("all-reduce", "a", scope="layer.attention.qkv"),
        instruction("all-reduce", "b", scope="layer.mlp.down", of="a"),
        tables=TABLES,
    )
    one = "channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum"
    after = program(f"b.9 = f32[64] all-reduce(p), {one}", f"a.9 = f32[64] all-reduce(b.9), {one}", partitions=2)
    twin = twin_of(after, 2, 1), twin_of(before, 1, 2)
    found = restore_names(after, before, twin=twin)
    assert (found.lost, found.restored) == (2, 2)
    assert [(name, scope) for name, scope, _ in scopes(found.text)] == [
        ("b.9", "layer.mlp.down"),
        ("a.9", "layer.attention.qkv"),
    ]
    assert found.text.count("channel_id=1,") == 2  # it is still the program that was compiled


def test_a_twin_that_was_compiled_into_something_else_is_not_believed():
    before = program(
        instruction("all-reduce", "a", scope="layer.attention.qkv"),
        instruction("all-reduce", "b", scope="layer.mlp.down", of="a"),
        tables=TABLES,
    )
    one = "channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=sum"
    after = program(f"a.9 = f32[64] all-reduce(p), {one}", partitions=2)
    other = program(f"a.9 = f32[64] all-reduce(p), {one}", f"b.9 = f32[64] all-reduce(a.9), {one}", partitions=2)
    assert restore_names(after, before, twin=(twin_of(other, 1, 2), twin_of(before, 1, 2))).restored == 0


def test_a_text_without_the_one_before_it_stays_as_it_is():
    after = program(*transfer("psum.7_0"), partitions=2)
    assert restore_names(after, "").text == after
