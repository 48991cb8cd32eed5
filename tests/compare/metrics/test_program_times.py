"""Each program of a profile, on profiles whose answer is known by hand.

The traits are those of public profiles: several programs, of which the one with the most time does not communicate;
`source`, `source_stack`, `tf_op`, `model_flops`, `bytes_accessed` on every operation, the device's rates on its plane.
"""

import pytest

from compare.metrics.program_times import list_longest, time_programs
from compare.timeline.errors import TimingError
from compare.timeline.programs import find_program, select_program
from compare.timeline.tracks.tracks import DeviceTracks
from tests.compare.timeline.scenes import AXES, F32, collective, timeline
from tests.compare.timeline.spaces import Ref, Space, tpu

STEP, SUM = "jit_step(17)", "jit_psum(18)"
MODULE = "/env/lib/python3.12/site-packages/torch/nn/modules/module.py"


def fusion(number):
    return f"%fusion.{number} = {F32} fusion({F32} %p), kind=kLoop, calls=%fused_computation.{number}"


def about(line, path, *, flops=0, moved=0):
    return {
        "about": {
            "hlo_category": Ref("loop fusion"),
            "source": f"{MODULE}:1775",
            "source_stack": f"{MODULE}:1775:3\n/w/{line}:2\n",
            "tf_op": path,
            "model_flops": flops,
            "bytes_accessed": moved,
        }
    }


def two_programs():
    """On 4 devices two steps of 100 ns: of two layers, 30 and 20 ns, and 40 ns of a head.  Then one sum of 8 of 10 ns.

    A device makes 10 FLOPs and 100 bytes a ns.
    """
    space = Space()
    for device in range(4):
        ops = []
        for begin in (0, 100):
            ops += [
                (fusion(1), begin, 30, about("layer.py:4", "jit(step)/layers_0/mlp/mul:", flops=150, moved=600)),
                (fusion(2), begin + 30, 20, about("layer.py:4", "jit(step)/layers_1/mlp/mul:", flops=150, moved=600)),
                (fusion(3), begin + 50, 40, about("head.py:9", "jit(step)/head/dot_general:", flops=300, moved=1000)),
            ]
        ops.append((collective("all-reduce", 7), 201, 8, about("run.py:5", "jit(psum)/psum:")))
        runs = [(STEP, 0, 100), (STEP, 100, 100), (SUM, 200, 10)]
        plane = tpu(space, device, ops, XLA_Modules=runs)
        plane.stats = {"peak_teraflops_per_second": 0.01, "peak_hbm_bw_gigabytes_per_second": 100.0}
    return space


def test_every_program_is_there_with_the_time_of_its_executions(tmp_path):
    step, other = time_programs(timeline(two_programs(), tmp_path))
    assert (step.program, step.executions, step.devices, step.total_ns) == (STEP, 2, 4, 200)
    assert (other.program, other.executions, other.total_ns) == (SUM, 1, 10)
    assert step.share == pytest.approx(200 / 210)
    assert (step.per_execution.step_ns, step.per_execution.compute_ns) == (100, 90)
    assert (other.per_execution.step_ns, other.per_execution.exposed_ns) == (10, 8)


def test_what_a_program_beside_the_steps_communicates_is_counted_over_all_devices(tmp_path):
    step, other = time_programs(timeline(two_programs(), tmp_path))
    assert step.communication == {}
    (total,) = other.communication.values()
    assert list(other.communication) == ["all-reduce"]
    assert (total.count, total.total_ns, total.exposed_ns) == (4, 32, 32)


def test_rows_by_line_name_the_users_line_and_the_innermost(tmp_path):
    step, other = time_programs(timeline(two_programs(), tmp_path))
    assert [(row.place, row.role, row.executions, row.time_ns) for row in step.lines] == [
        ("/w/layer.py:4", "compute", 2, 50),
        ("/w/head.py:9", "compute", 1, 40),
    ]
    assert step.lines[0].inner.endswith("module.py:1775")
    (row,) = other.lines
    assert (row.place, row.kind, row.axes, row.executions, row.time_ns, row.exposed_ns, row.payload_bytes) == (
        "/w/run.py:5",
        "all-reduce",
        "tensor",
        1,
        8,
        8,
        4000,
    )


def test_rows_by_part_of_the_model_fold_layers(tmp_path):
    step, _ = time_programs(timeline(two_programs(), tmp_path))
    assert [(row.place, row.time_ns) for row in step.parts] == [("layers_*/mlp", 50), ("head", 40)]


def test_operations_that_differ_in_their_number_are_one_with_its_roofline(tmp_path):
    """Two layers: 300 FLOPs take 30 ns, 1,200 bytes 12; the head's 300 take 30, its 1,000 bytes 10."""
    step, _ = time_programs(timeline(two_programs(), tmp_path))
    rows = [
        (row.name, row.instructions, row.time_ns, row.flops, row.memory_bytes, row.roofline_ns, row.bound)
        for row in step.operations
    ]
    assert rows == [
        ("fusion.1", 2, 50, 300, 1200, 30, "arithmetic"),
        ("fusion.3", 1, 40, 300, 1000, 30, "arithmetic"),
    ]


def test_without_rates_or_amounts_there_is_no_roofline(tmp_path):
    space = Space()
    tpu(space, 0, [(fusion(1), 0, 5)], XLA_Modules=[(STEP, 0, 10)])
    (program,) = time_programs(timeline(space, tmp_path))
    (operation,) = program.operations
    assert (operation.flops, operation.memory_bytes, operation.roofline_ns, operation.bound) == (None, None, None, "")
    assert program.lines == program.parts == ()


def test_the_ten_longest_of_each_kind_of_time(tmp_path):
    space = Space()
    ops = [(f"%op{number}x = {F32} add({F32} %p, {F32} %p)", 20 * number, 12 - number) for number in range(12)]
    ops += [(f"%copy-done.{number} = {F32} copy-done(%copy-start.{number})", 300 + number, 1) for number in range(2)]
    tpu(space, 0, ops, XLA_Modules=[(STEP, 0, 400)])
    (program,) = time_programs(timeline(space, tmp_path))
    computes = [row for row in program.operations if row.role == "compute"]
    assert [row.time_ns for row in computes] == list(range(12, 2, -1))
    (copy,) = [row for row in program.operations if row.role == "copy"]
    assert (copy.instructions, copy.time_ns) == (2, 2)


def test_a_program_is_chosen_with_or_without_its_number(tmp_path):
    shown = timeline(two_programs(), tmp_path)
    assert find_program(shown, "jit_psum") == find_program(shown, SUM) == SUM
    chosen = select_program(shown, SUM)
    assert (chosen.num_steps, len(chosen.events), chosen.events["step"].tolist()) == (1, 4, [0] * 4)
    assert not any("outside all steps" in note or "nothing marks steps" in note for note in chosen.notes)
    with pytest.raises(TimingError, match="no program 'jit_f'; name one of: jit_step, jit_psum"):
        find_program(shown, "jit_f")


def test_of_two_programs_of_one_name_the_number_tells_which(tmp_path):
    space = Space()
    tpu(space, 0, [(fusion(1), 0, 5), (fusion(1), 20, 5)], XLA_Modules=[("jit_f(1)", 0, 10), ("jit_f(2)", 20, 10)])
    shown = timeline(space, tmp_path)
    with pytest.raises(TimingError, match=r"2 programs of the name 'jit_f'; name one of: jit_f\(1\), jit_f\(2\)"):
        find_program(shown, "jit_f")
    assert find_program(shown, "jit_f(2)") == "jit_f(2)"


def test_the_longest_operation_of_each_kind_of_time_is_known(tmp_path):
    longest = list_longest(DeviceTracks.of(timeline(two_programs(), tmp_path, axes=AXES)))
    assert {role: (row.name, row.instructions) for role, row in longest.items()} == {"compute": ("fusion.1", 2)}
