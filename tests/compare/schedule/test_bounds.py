"""What the model refuses, and where it draws several as one."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.schedule import schedule, step, trace_writer
from compare.timeline.errors import TimingError
from meshes.mesh_argument import read_mesh
from tests.compare.schedule.toys import LOOPED, X, all_reduce, loop, program, run


def test_a_loop_without_communication_that_is_too_long_is_one_event():
    body = f"  last = {X} compute(y, 10)"
    timeline = run(program(LOOPED, more=loop(body, trips=100_000)))
    assert timeline.events[["hlo_op", "duration_ns"]].values.tolist() == [["around", 1_000_000]]
    assert timeline.notes == ("around computes 100000 times without a pause: it is shown as one event",)


def test_too_many_events_are_drawn_together_and_noted(monkeypatch):
    monkeypatch.setattr(trace_writer, "MOST_EVENTS", 5)
    body = f"  z = {X} compute(y, 30)\n  w = {X} compute(z, 70)\n  last = {X} {all_reduce('w')}"
    timeline = run(program(LOOPED, more=loop(body, trips=3)))
    computed = timeline.events[timeline.events["role"] == "compute"]
    assert computed[["hlo_op", "duration_ns"]].values.tolist() == [["w", 100]] * 3
    assert "one event, by its longest operation" in timeline.notes[0]


def test_a_schedule_that_waits_too_often_is_refused(monkeypatch):
    monkeypatch.setattr(step, "MOST_POINTS", 3)
    body = f"  last = {X} {all_reduce('y')}"
    with pytest.raises(TimingError, match="more than 3 times"):
        run(program(LOOPED, more=loop(body, trips=4)))


def test_a_program_for_other_devices_is_refused():
    module = read(program(f"  ROOT y = {X} {all_reduce('x')}"))
    with pytest.raises(TimingError, match="the program is for 8 devices, and mesh tp4 on v5e:2x2 has 4"):
        schedule.model_step(module, collectives(module, {}), read_mesh("tp4"))


def test_groups_of_devices_that_are_not_there_are_refused():
    text = program(f"  ROOT y = {X} {all_reduce('x', groups='{{0,1,9}}')}", head="")
    with pytest.raises(TimingError, match="y names device 9, but there are 8 of them"):
        schedule.model_step(read(text), collectives(read(text), {}), read_mesh("tp4pp2"))
