"""The list of a step: loops unrolled, ends that name their starts, branches as masks of classes."""

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.schedule.schedule import simulate_program
from meshes.mesh_argument import read_mesh
from tests.compare.schedule.toys import LOOPED, ROUND, SHIFT, X, all_reduce, comms, loop, program, run


def entries(text):
    """(kind, name, the entry where it began, active classes) of each entry."""
    plan, module = read_mesh("tp4pp2"), read(text)
    step = simulate_program(module, collectives(module, plan.mesh.split_axes), plan, hardware=ROUND).step
    return [
        (
            type(each).__name__,
            "+".join(each.run.names) if hasattr(each, "run") else each.name,
            getattr(each, "begun", None),
            each.active.tolist(),
        )
        for each in step.entries
    ]


def test_a_loop_is_unrolled_and_closed_behind_its_last_trip():
    body = f"  z = {X} compute(y, 10)\n  last = {X} {all_reduce('z')}"
    trip = [("Compute", "z", None), ("Exchange", "last", None)]
    listed = entries(program(LOOPED, more=loop(body, trips=2)))
    assert [each[:3] for each in listed] == [*trip, *trip, ("Container", "around", 0)]
    assert all(all(active) for *_, active in listed)


def test_an_end_names_the_entry_that_it_waits_for():
    begun = all_reduce("x").replace("all-reduce(", "all-reduce-start(")
    listed = entries(
        program(
            f"""
  w = f32[1000]{{0}} parameter(1)
  c = ({X}, f32[1000]{{0}}, u32[]) copy-start(w)
  s = {X} {begun}
  y = {X} compute(x, 10)
  e = {X} copy-done(c)
  ROOT d = {X} all-reduce-done(s)
"""
        )
    )
    assert [each[:3] for each in listed] == [
        ("LocalCopy", "c", None),
        ("Exchange", "s", None),
        ("Compute", "y", None),
        ("Wait", "e", 0),
        ("Wait", "d", 1),
    ]


def test_a_branch_is_on_the_classes_that_take_it():
    """Devices 4 to 7, the second class, take `early`, behind the branch of false."""
    branches = f"""
late {{
  l = {X} parameter(0)
  ROOT m = {X} compute(l, 1000)
}}
early {{
  e = {X} parameter(0)
  ROOT k = {X} compute(e, 300)
}}
"""
    entry = f"""
  id = u32[] partition-id()
  four = u32[] constant(4)
  second = pred[] compare(id, four), direction=GE
  y = {X} conditional(second, x, x), true_computation=early, false_computation=late
  ROOT z = {X} collective-permute(y), channel_id=1, source_target_pairs={SHIFT}
"""
    assert entries(program(entry, more=branches)) == [
        ("Compute", "m", None, [True, False]),
        ("Compute", "k", None, [False, True]),
        ("Container", "y", 0, [True, True]),
        ("Exchange", "z", None, [True, True]),
    ]


def test_a_done_behind_branches_waits_in_each_class_for_what_it_started():
    """540 ns each: launch, 2 · 2 steps of one link between chips two apart, and 2 · 1/2 of 4000 bytes."""
    started = [
        f"{name} {{\n  p.{name} = {X} parameter(0)\n  ROOT {start} = {X} "
        + all_reduce(f"p.{name}", groups=groups).replace("all-reduce(", "all-reduce-start(")
        + "\n}\n"
        for name, start, groups in (("late", "s1", "{{1,3},{5,7}}"), ("early", "s2", "{{0,2},{4,6}}"))
    ]
    entry = f"""
  id = u32[] partition-id()
  one = u32[] constant(1)
  bit = u32[] and(id, one)
  odd = pred[] compare(bit, one), direction=EQ
  y = {X} conditional(odd, x, x), true_computation=late, false_computation=early
  ROOT d = {X} all-reduce-done(y)
"""
    text = program(entry, more="".join(started))
    assert [each[:3] for each in entries(text)] == [
        ("Exchange", "s2", None),
        ("Exchange", "s1", None),
        ("Container", "y", 0),
        ("Wait", "d", 0),
        ("Wait", "d", 1),
    ]
    timeline = run(text)
    assert timeline.notes == ()
    assert [[row[:3] for row in comms(timeline, device)] for device in (0, 1)] == [[("s2", 0, 540)], [("s1", 0, 540)]]
