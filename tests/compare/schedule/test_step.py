"""The list of a step: loops unrolled, ends that name their starts, branches as masks of classes."""

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.schedule.schedule import simulate_program
from meshes.mesh_argument import read_mesh
from tests.compare.schedule.toys import LOOPED, ROUND, SHIFT, X, all_reduce, loop, program


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
