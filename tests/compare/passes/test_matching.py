import pytest

from compare.passes.matching import match
from compare.passes.snapshot import read_snapshot

ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"


def program(*lines, parameters=("p = f32[8,16] parameter(0)", "q = f32[8,16] parameter(1)")):
    body = "\n  ".join((*parameters, *lines))
    return read_snapshot(
        f"HloModule m, num_partitions=8\n\n{ADD}\nENTRY main {{\n  {body}\n  ROOT r = f32[] constant(0)\n}}\n"
    )


def reduce(name, operand="p", *, channel=1, op_name="down", shape="f32[8,16]"):
    return (
        f"{name} = {shape} all-reduce({operand}), channel_id={channel}, replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, "
        f'use_global_device_ids=true, to_apply=add, metadata={{op_name="{op_name}"}}'
    )


def gather(name, operand="p", *, channel=1, op_name="up", out="f32[32,16]", opcode="all-gather"):
    return (
        f"{name} = {out} {opcode}({operand}), channel_id={channel}, replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, "
        f'dimensions={{0}}, use_global_device_ids=true, metadata={{op_name="{op_name}"}}'
    )


def links(before, after):
    """New name -> (old names, what)."""
    step = match(before, after)
    return {name: (" ".join(one.name for one in link.sources), link.what) for name, link in step.links.items()}


def list_lost(before, after):
    return [one.name for one in match(before, after).lost]


def test_what_stays_the_same_is_the_same_whatever_it_is_called():
    before, after = program(reduce("x.1"), gather("y.1")), program(reduce("x.7"), gather("y.1"))
    assert links(before, after) == {"x.7": ("x.1", ""), "y.1": ("y.1", "")}


def test_names_that_are_given_out_again_do_not_mislead():
    before = program(reduce("psum.1", op_name="out"), reduce("psum.2", op_name="down"))
    after = program(reduce("psum.1", op_name="down"), reduce("psum.2", op_name="out"))
    assert links(before, after) == {"psum.1": ("psum.2", ""), "psum.2": ("psum.1", "")}


def test_the_same_one_with_narrower_elements_was_replaced_and_is_no_copy_of_its_neighbour():
    """libtpu's bfloat16-propagation on two gathers of one op_name: the wide one becomes as large as the other."""
    before = program(
        gather("a.1", channel=2, out="f32[32,16]"),
        gather("a.2", channel=3, out="bf16[32,16]"),
    )
    after = program(gather("a.1", channel=2, out="bf16[32,16]"), gather("a.2", channel=3, out="bf16[32,16]"))
    assert links(before, after) == {"a.1": ("a.1", "replaced"), "a.2": ("a.2", "")}


def test_two_that_one_took_the_operands_of_were_merged():
    before = program(reduce("x.1", "p"), reduce("x.2", "q", channel=2))
    after = program(reduce("x.3", "p, q", channel=3, op_name="", shape="(f32[8,16], f32[8,16])"))
    assert links(before, after) == {"x.3": ("x.1 x.2", "merged")}


def test_one_whose_operands_two_took_was_split():
    before = program(reduce("x.3", "p, q", channel=3, op_name="", shape="(f32[8,16], f32[8,16])"))
    after = program(reduce("x.1", "p", op_name="one"), reduce("x.2", "q", channel=2, op_name="other"))
    assert links(before, after) == {"x.1": ("x.3", "split"), "x.2": ("x.3", "split")}


def test_one_that_came_back_as_two_others_of_its_name_was_split():
    before = program(reduce("x.1", channel=1, op_name="layer/psum"))
    after = program(
        "s = f32[2,16] reduce-scatter(p), channel_id=2, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}, "
        'use_global_device_ids=true, to_apply=add, metadata={op_name="layer/psum"}',
        gather("g", "s", channel=3, op_name="layer/psum", out="f32[8,16]"),
    )
    assert links(before, after) == {"s": ("x.1", "split"), "g": ("x.1", "split")}


def test_one_that_begins_and_ends_apart_was_made_async_and_back():
    before = program(gather("g.1"))
    after = program(gather("g-start", out="(f32[8,16], f32[32,16])", opcode="all-gather-start"))
    assert links(before, after) == {"g-start": ("g.1", "made async")}
    assert links(after, before) == {"g.1": ("g-start", "made sync")}


def test_one_more_of_the_same_is_a_copy_of_it():
    before = program(gather("g.1"))
    after = program(gather("g.1"), gather("g.2"))
    assert links(before, after) == {"g.1": ("g.1", ""), "g.2": ("g.1", "copied")}


def test_what_nothing_explains_is_not_explained():
    before = program(reduce("x.1"))
    after = program(reduce("x.1"), gather("g", channel=9, op_name="other"))
    assert set(links(before, after)) == {"x.1"}
    assert list_lost(before, after) == []
    unrelated = program(gather("g", "q", channel=9, op_name="other", out="f32[64,16]"))
    assert links(before, unrelated) == {}
    assert list_lost(before, unrelated) == ["x.1"]


@pytest.mark.parametrize("count", [2, 3])
def test_those_that_nothing_tells_apart_are_taken_in_their_order_and_known_as_such(count):
    before = program(*(gather(f"g.{at}") for at in range(count)))
    after = program(*(gather(f"h.{at}") for at in range(count)))
    found = match(before, after).links
    assert {name: link.sources[0].name for name, link in found.items()} == {f"h.{at}": f"g.{at}" for at in range(count)}
    assert all(len(link.among) == count for link in found.values())


def test_parts_that_lost_their_name_are_known_by_a_channel_that_only_one_had():
    """libtpu's split-ici-dcn on a gather without op_name: one part is as large as the whole was, the other smaller."""
    before = program(gather("g.1", channel=3, op_name="", out="f32[32,16]"), reduce("x.1", channel=4))
    after = program(
        gather("g.2", channel=3, op_name="", out="f32[16,16]").replace(
            "{0,1,2,3},{4,5,6,7}", "{0,4},{1,5},{2,6},{3,7}"
        ),
        gather("g.3", "g.2", channel=3, op_name="", out="f32[32,16]").replace("{0,1,2,3},{4,5,6,7}", "{0,1},{2,3}"),
        reduce("x.1", channel=4),
    )
    assert links(before, after) == {"g.2": ("g.1", "split"), "g.3": ("g.1", "split"), "x.1": ("x.1", "")}


def test_a_step_in_which_any_became_something_else_is_disturbed():
    before, same = program(reduce("x.1")), program(reduce("x.2"), gather("g", "q", channel=9, op_name="other"))
    assert not match(before, same).is_disturbed
    other = program(gather("x.1", op_name="down"), gather("g", "q", channel=9, op_name="other"))
    assert match(before, other).is_disturbed
