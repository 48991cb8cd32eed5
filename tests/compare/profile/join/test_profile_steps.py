"""Where steps begin and end: as the devices mark them, the host, the programs; or all of it is one."""

import pandas as pd

from compare.profile.join.profile_steps import find_steps as steps_of
from compare.profile.xplane.device_events import DeviceEvents, frame
from tests.compare.timeline.scenes import FUSION, REDUCE, timeline
from tests.compare.timeline.spaces import Space, tpu

OPS = [(FUSION, 10, 5), (REDUCE, 15, 5), (FUSION, 110, 5), (REDUCE, 115, 5)]
MODULES = [("jit_f(17)", 5, 20), ("jit_f(17)", 105, 25), ("jit_tiny(3)", 150, 1)]


def steps(joined):
    columns = ["device", "step", "start_ns", "duration_ns"]
    return [tuple(row) for row in joined.steps[columns].itertuples(index=False)]


def annotate(space, *marks, word="step"):
    line = space.plane("/host:CPU").line("python")
    for number, begin, length in marks:
        line.event(word, begin, length, stats={"step_num": number})


def test_a_devices_own_marks_come_first(tmp_path):
    space = Space()
    tpu(space, 0, OPS, Steps=[("4", 10, 90), ("5", 100, 90)], XLA_Modules=MODULES)
    annotate(space, (0, 0, 100), (1, 100, 100))
    joined = timeline(space, tmp_path)
    assert steps(joined) == [(0, 4, 10, 90), (0, 5, 100, 90)]
    assert joined.events["step"].tolist() == [4, 4, 5, 5]


def test_a_device_without_marks_takes_those_of_the_others(tmp_path):
    space = Space()
    tpu(space, 0, OPS, Steps=[("4", 10, 90)])
    tpu(space, 1, OPS, Steps=[("4", 15, 90)])
    tpu(space, 2, OPS)
    joined = timeline(space, tmp_path)
    assert steps(joined)[-1] == (2, 4, 10, 95)
    assert "devices 2 mark no steps of their own: those of the others are taken" in joined.notes


def test_then_what_the_host_marks_for_all_of_its_devices(tmp_path):
    space = Space()
    for device in (0, 1):
        tpu(space, device, OPS, XLA_Modules=MODULES)
    annotate(space, (3, 0, 100), (4, 100, 100))
    assert steps(timeline(space, tmp_path)) == [(0, 3, 0, 100), (0, 4, 100, 100), (1, 3, 0, 100), (1, 4, 100, 100)]


def test_of_several_kinds_of_marks_the_one_with_the_most_steps(tmp_path):
    space = Space()
    tpu(space, 0, OPS)
    annotate(space, (0, 0, 100), (1, 100, 100), word="decode")
    annotate(space, (0, 0, 200), word="prefill")
    joined = timeline(space, tmp_path)
    assert steps(joined) == [(0, 0, 0, 100), (0, 1, 100, 100)]
    assert "steps are those marked 'decode', not 'prefill'" in joined.notes


def test_marks_that_do_not_hold_the_operations_are_not_taken(tmp_path):
    """The host ran ahead of the devices."""
    space = Space()
    tpu(space, 0, OPS, XLA_Modules=MODULES)
    annotate(space, (0, 0, 2), (1, 2, 2))
    joined = timeline(space, tmp_path)
    assert steps(joined) == [(0, 0, 5, 20), (0, 1, 105, 25)]


def test_then_each_execution_of_the_program_that_takes_the_most_time(tmp_path):
    space = Space()
    tpu(space, 0, OPS, XLA_Modules=MODULES)
    joined = timeline(space, tmp_path)
    assert steps(joined) == [(0, 0, 5, 20), (0, 1, 105, 25)]
    assert "nothing marks steps: each execution of 'jit_f(17)' is taken for one" in joined.notes


def test_that_program_may_have_the_fewer_operations(tmp_path):
    space = Space()
    often = [(FUSION, 200 + 10 * at, 5) for at in range(10)]
    modules = [("jit_prefill(1)", 0, 200), *(("jit_decode(2)", start, length) for _, start, length in often)]
    tpu(space, 0, [(FUSION, 0, 150), (REDUCE, 150, 50), *often], XLA_Modules=modules)
    assert steps(timeline(space, tmp_path)) == [(0, 0, 0, 200)]


def test_else_all_of_it_is_one_step(tmp_path):
    space = Space()
    tpu(space, 0, OPS)
    joined = timeline(space, tmp_path)
    assert steps(joined) == [(0, 0, 10, 110)]
    assert any(note.startswith("nothing marks steps: all that was recorded") for note in joined.notes)


def test_executions_whose_device_is_not_known_are_no_steps_where_others_are():
    """Two devices run the program twice; of a third run the profile shows a part, and not on which device."""
    ops = [(0, 1, 10), (1, 1, 12), (0, 2, 110), (1, 2, 112), (-1, 3, 50)]
    columns = {
        "device": [device for device, _, _ in ops],
        "line": "pool",
        "name": "add",
        "hlo_op": "add",
        "module": "f(0)",
        "text": "",
        "category": "",
        "tf_op": "",
        "main": True,
        "start_ns": [start for *_, start in ops],
        "duration_ns": 20,
        "wait_ns": float("nan"),
        "run": [run for _, run, _ in ops],
    }
    marks = steps_of(DeviceEvents(events=frame(columns, length=len(ops))), pd.DataFrame())
    rows = marks.frame[marks.frame["device"] >= 0].sort_values(["device", "step"])
    assert rows[["device", "step", "start_ns"]].values.tolist() == [[0, 0, 10], [0, 1, 110], [1, 0, 12], [1, 1, 112]]
    assert (marks.frame["device"] >= 0).all()
