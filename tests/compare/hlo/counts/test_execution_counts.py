"""How often each device runs a collective: loops, branches, calls, and what nothing calls."""

import pytest

from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.counts.execution_counts import count_executions
from compare.hlo.devices.groups import DeviceNumbering
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
REDUCE = "f32[8]{0} all-reduce(%s), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add"


def count(text, *, partitions=4):
    values = Evaluator(DeviceNumbering(1, partitions))
    return count_executions(read(f"HloModule m, num_partitions={partitions}\n{ADD}{text}"), values)


def loop(name, *, trips, inside, outer="f32[8]", bound="constant"):
    """A computation pair that runs `inside` on its data `trips` times."""
    return f"""{name}_body {{
  {name}_c = (s32[], {outer}) parameter(0)
  {name}_i = s32[] get-tuple-element({name}_c), index=0
  {name}_x = {outer} get-tuple-element({name}_c), index=1
  {name}_one = s32[] constant(1)
  {name}_n = s32[] add({name}_i, {name}_one)
  {inside}
  ROOT {name}_out = (s32[], {outer}) tuple({name}_n, {name}_y)
}}
{name}_condition {{
  {name}_d = (s32[], {outer}) parameter(0)
  {name}_j = s32[] get-tuple-element({name}_d), index=0
  {name}_end = s32[] {bound}({trips})
  ROOT {name}_test = pred[] compare({name}_j, {name}_end), direction=LT
}}
"""


def call_loop(name, data, result, *, indent="  "):
    """The lines that run it."""
    return f"""{name}_zero = s32[] constant(0)
{indent}{name}_first = (s32[], f32[8]) tuple({name}_zero, {data})
{indent}{name} = (s32[], f32[8]) while({name}_first), condition={name}_condition, body={name}_body
{indent}{result} = f32[8] get-tuple-element({name}), index=1"""


def test_loops_multiply():
    text = loop("inner", trips=5, inside="inner_y = " + REDUCE % "inner_x")
    text += loop("outer", trips=3, inside=call_loop("inner", "outer_x", "outer_y"))
    (one,) = count(text + entry(*call_loop("outer", "p", "r").split("\n  ")))
    assert one.device_executions == (15,) * 4
    assert one.executions_are == "exact"
    assert [(around.name, around.trip_count) for around in one.loops] == [("outer", 3), ("inner", 5)]


def test_a_loop_of_unknown_count_makes_all_inside_unknown():
    text = loop("inner", trips=5, inside="inner_y = " + REDUCE % "inner_x")
    text += loop("outer", trips=0, bound="parameter", inside=call_loop("inner", "outer_x", "outer_y"))
    text = text.replace("outer_end = s32[] parameter(0)", "outer_end = s32[] rng-get-and-update-state()")
    (one,) = count(text + entry(*call_loop("outer", "p", "r").split("\n  ")))
    assert one.device_executions == ()
    assert one.executions_are == "unknown"
    assert [around.trip_count for around in one.loops] == [None, 5]


def test_a_condition_runs_once_more_than_its_body():
    text = loop("l", trips=3, inside="l_y = f32[8] negate(l_x)")
    text = text.replace(
        "  l_end", "  l_x2 = f32[8] get-tuple-element(l_d), index=1\n  l_r = " + REDUCE % "l_x2" + "\n  l_end"
    )
    (one,) = count(text + entry(*call_loop("l", "p", "r").split("\n  ")))
    assert one.device_executions == (4,) * 4


def test_the_call_sites_of_a_shared_computation_add_up():
    shared = "shared {\n  q = f32[8] parameter(0)\n  ROOT t = " + REDUCE % "q" + "\n}\n"
    text = shared + loop("l", trips=3, inside="l_y = f32[8] call(l_x), to_apply=shared")
    (one,) = count(
        text
        + "ENTRY main {\n  p = f32[8] parameter(0)\n  a = f32[8] call(p), to_apply=shared\n  "
        + call_loop("l", "a", "ROOT r")
        + "\n}\n"
    )
    assert one.device_executions == (4,) * 4
    assert len(one.frames) == 2


def computation(name, *lines):
    """`q` is its parameter, its last line its root."""
    body = "\n  ".join(("q = f32[8] parameter(0)", *lines[:-1], "ROOT " + lines[-1]))
    return f"{name} {{\n  {body}\n}}\n"


def entry(*lines):
    return computation("ENTRY main", *lines).replace("q = f32[8]", "p = f32[8]")


BRANCHES = computation("yes", "a = " + REDUCE % "q") + computation("no", "c = f32[8] copy(q)")


def conditional(*lines, choice="conditional(go, p, p), true_computation=yes, false_computation=no"):
    body = "\n  ".join(("p = f32[8] parameter(0)", *lines, f"ROOT r = f32[8] {choice}"))
    return count(BRANCHES + f"ENTRY main {{\n  {body}\n}}\n")[0]


def test_a_branch_runs_on_the_devices_whose_predicate_says_so():
    one = conditional(
        "i = u32[] partition-id()", "two = u32[] constant(2)", "go = pred[] compare(i, two), direction=GE"
    )
    assert one.device_executions == (0, 0, 1, 1)
    assert (one.executions_are, one.in_exact_branch) == ("exact", True)


def test_a_branch_by_number_counts_from_zero_and_ends_at_the_last():
    by_number = "conditional(n, p, p), branch_computations={no, yes}"
    one = conditional("i = u32[] partition-id()", "n = s32[] convert(i)", choice=by_number)
    assert one.device_executions == (0, 1, 1, 1)


def test_a_branch_that_data_decides_counts_at_its_bound():
    one = conditional("go = pred[] rng-get-and-update-state()")
    assert one.device_executions == (1, 1, 1, 1)
    assert (one.executions_are, one.in_exact_branch) == ("upper-bound", False)


def test_a_branch_in_a_loop_is_counted_for_each_device_and_iteration():
    inside = """l_p = u32[] partition-id()
  l_s = s32[] convert(l_p)
  l_go = pred[] compare(l_i, l_s), direction=GE
  l_y = f32[8] conditional(l_go, l_x, l_x), true_computation=yes, false_computation=no"""
    text = BRANCHES + loop("l", trips=6, inside=inside)
    (one,) = count(text + entry(*call_loop("l", "p", "r").split("\n  ")))
    # Device d joins from iteration d on.
    assert one.device_executions == (6, 5, 4, 3)


def test_a_known_branch_in_a_loop_in_a_known_branch_counts_both():
    inner = loop(
        "k", trips=4, inside="k_y = f32[8] conditional(k_go, k_x, k_x), true_computation=yes, false_computation=no"
    )
    inner = inner.replace(
        "  k_y", "  k_two = s32[] constant(2)\n  k_go = pred[] compare(k_i, k_two), direction=LT\n  k_y"
    )
    enter = computation("enter", *call_loop("k", "q", "e_r").split("\n  ")) + computation("skip", "f = f32[8] copy(q)")
    lines = "i = u32[] partition-id()\n  one = u32[] constant(1)\n  go = pred[] compare(i, one), direction=EQ\n  "
    choice = "ROOT r = f32[8] conditional(go, p, p), true_computation=enter, false_computation=skip\n"
    (one,) = count(BRANCHES + inner + enter + "ENTRY main {\n  p = f32[8] parameter(0)\n  " + lines + choice + "}\n")
    assert one.device_executions == (0, 2, 0, 0)


LOST = "lost {\n  q = f32[8] parameter(0)\n  ROOT t = " + REDUCE % "q" + "\n}\n"


@pytest.mark.parametrize(
    "caller", ["", "dead {\n  d = f32[8] parameter(0)\n  ROOT c = f32[8] call(d), to_apply=lost\n}\n"]
)
def test_a_collective_that_nothing_calls_is_refused(caller):
    with pytest.raises(HloError, match=r"^line 9: a collective in computation 'lost', which nothing that runs calls"):
        count(LOST + caller + "ENTRY main {\n  ROOT p = f32[8] parameter(0)\n}\n")


def test_what_nothing_calls_and_has_no_collective_is_passed_over():
    dead = "dead {\n  d = f32[8] parameter(0)\n  ROOT e = f32[8] negate(d)\n}\n"
    assert count(dead + "ENTRY main {\n  ROOT p = f32[8] parameter(0)\n}\n") == []


def test_order_is_the_schedules_and_not_the_texts():
    first = "late {\n  q = f32[8] parameter(0)\n  ROOT in_call = " + REDUCE % "q" + "\n}\n"
    body = "p = f32[8] parameter(0)\n  early = " + REDUCE % "p" + "\n  ROOT r = f32[8] call(early), to_apply=late"
    assert [one.item.name for one in count(first + f"ENTRY main {{\n  {body}\n}}\n")] == ["early", "in_call"]


def test_words_in_quotes_are_no_collectives():
    text = 'ENTRY main {\n  ROOT p = f32[8] parameter(0), metadata={op_name="an all-reduce(x) of all-gather(y)"}\n}\n'
    assert count(text) == []


@pytest.mark.parametrize("opcode", ["all-scatter", "collective-whisper", "ragged-all-gather-start"])
def test_an_unknown_kind_of_collective_is_not_passed_over(opcode):
    with pytest.raises(HloError, match=rf"^line 9: unknown kind of collective '{opcode}'"):
        count(f"ENTRY main {{\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] {opcode}(p)\n}}\n")


def test_a_collective_inside_a_reduction_cannot_be_placed():
    text = "odd {\n  u = f32[8] parameter(0)\n  ROOT v = " + REDUCE % "u" + "\n}\n"
    text += "ENTRY main {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] map(p), dimensions={0}, to_apply=odd\n}\n"
    with pytest.raises(HloError, match=r"line 13: .*map"):
        count(text)


def test_a_missing_computation_could_have_had_a_collective():
    with pytest.raises(HloError, match=r"^line 9: the computation 'gone' is not in the text"):
        count("ENTRY main {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] call(p), to_apply=gone\n}\n")
