"""Two profiles against each other: steps of which every time is known, a later version of the same with three changes.

The traits of real profiles: programs and operations whose number changes with every compilation, lines of source that
move, a collective that comes.
"""

import json

import pytest

from compare.cli.diff import main
from compare.diff.profiles.conditions import list_slower, read_condition
from compare.diff.profiles.difference import diff_timelines
from compare.timeline.errors import TimingError
from meshes.process.command_line import run_command
from tests.compare.timeline.scenes import F32, TENSOR, timeline
from tests.compare.timeline.spaces import Ref, Space, tpu


def fusion(number):
    return f"%fusion.{number} = {F32} fusion({F32} %p), kind=kLoop, calls=%fused_computation.{number}"


def reduce(number):
    how = f"channel_id=1, replica_groups={TENSOR}, to_apply=%add"
    return f"%all-reduce.{number} = {F32} all-reduce({F32} %fusion.2), {how}"


def source(line, path):
    about = {
        "hlo_category": Ref("loop fusion"),
        "source": f"/w/{line}",
        "source_stack": f"/w/{line}:2\n",
        "tf_op": path,
    }
    return {"about": about}


def before():
    """A step of 100 µs: the MLP 40, attention 30, a sum of 20 that nothing hides, 10 of nothing."""
    ops = [
        (fusion(1), 0, 40_000, source("mlp.py:7", "jit(step)/mlp/dot:")),
        (fusion(2), 40_000, 30_000, source("attention.py:9", "jit(step)/attention/dot:")),
        (reduce(3), 70_000, 20_000, source("mlp.py:8", "jit(step)/mlp/psum:")),
    ]
    return space("jit_step(17)", ops, 100_000)


def after():
    """125 µs: another sum of 15 in attention, whose own line moved from 9 to 12; the MLP takes 45, its sum 25."""
    ops = [
        (fusion(4), 0, 45_000, source("mlp.py:7", "jit(step)/mlp/dot:")),
        (fusion(5), 45_000, 30_000, source("attention.py:12", "jit(step)/attention/dot:")),
        (reduce(6), 75_000, 15_000, source("attention.py:13", "jit(step)/attention/psum:")),
        (reduce(8), 90_000, 25_000, source("mlp.py:8", "jit(step)/mlp/psum:")),
    ]
    return space("jit_step(99)", ops, 125_000)


def space(program, ops, length):
    made = Space()
    for device in range(4):
        tpu(made, device, ops, XLA_Modules=[(program, 0, length)])
    return made


@pytest.fixture
def difference(tmp_path):
    sides = [timeline(made, tmp_path / name) for name, made in (("a", before()), ("b", after()))]
    return diff_timelines(*sides, names=("a", "b"))


def test_programs_are_the_same_by_name_and_their_parts_add_up(difference):
    (program,) = difference.programs
    assert (program.program, program.executions, program.step_ns) == ("jit_step", (1, 1), (100_000, 125_000))
    assert program.parts == {
        "compute": (70_000, 75_000),
        "copies": (0, 0),
        "exposed": (20_000, 40_000),
        "idle": (10_000, 10_000),
    }
    assert (program.shortest_ns, program.longest_ns) == ((100_000, 125_000), (100_000, 125_000))


def test_lines_are_those_that_became_slower_first_also_where_they_moved(difference):
    (program,) = difference.programs
    assert [(row.what, row.before, row.kind, row.time_ns, row.difference_ns) for row in program.lines] == [
        ("/w/attention.py:13", "", "all-reduce", (0, 15_000), 15_000),
        ("/w/mlp.py:7", "", "", (40_000, 45_000), 5_000),
        ("/w/mlp.py:8", "", "all-reduce", (20_000, 25_000), 5_000),
        ("/w/attention.py:12", "/w/attention.py:9", "", (30_000, 30_000), 0),
    ]


def test_operations_are_the_same_whatever_their_numbers(difference):
    (program,) = difference.programs
    assert [(row.before, row.what, row.executions, row.difference_ns) for row in program.operations] == [
        ("", "all-reduce.6", (0, 1), 15_000),
        ("fusion.1", "fusion.4", (1, 1), 5_000),
        ("all-reduce.3", "all-reduce.8", (1, 1), 5_000),
        ("fusion.2", "fusion.5", (1, 1), 0),
    ]


def test_collectives_are_summed_by_kind_and_axes(difference):
    (row,) = difference.programs[0].collectives
    assert (row.kind, row.axes, row.executions, row.payload_bytes, row.exposed_ns, row.difference_ns) == (
        "all-reduce",
        "tensor",
        (1, 2),
        (4000, 8000),
        (20_000, 40_000),
        20_000,
    )


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("step > 24 %", True),
        ("step > 25 %", False),
        ("step > 24us", True),
        ("exposed > 19.9 µs", True),
        ("jit_step.exposed > 20 us", False),
        ("jit_step.compute > 0.005 ms", False),
        ("idle > 0%", False),
        ("copies > 0 %", False),
    ],
)
def test_a_condition_is_of_what_became_longer(difference, text, holds):
    assert bool(list_slower(difference, [read_condition(text)])) is holds


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("step", "cannot read --fail-if 'step'; write"),
        ("speed > 5 %", "parts are step, compute, copies, exposed"),
        ("step > 5", "cannot read"),
        ("step > 5.5.5 %", "is no number"),
        ("jit_train.step > 5 %", "no such program is in both profiles; name one of: jit_step"),
    ],
)
def test_a_wrong_condition_says_what_would_be_right(difference, text, complaint):
    with pytest.raises(TimingError, match=complaint):
        list_slower(difference, [read_condition(text)])


def test_a_profile_against_itself_differs_nowhere(tmp_path):
    same = timeline(before(), tmp_path)
    (program,) = diff_timelines(same, same, names=("a", "a")).programs
    assert all(a == b for a, b in (program.step_ns, *program.parts.values()))
    assert {row.difference_ns for row in (*program.lines, *program.operations, *program.collectives)} == {0}


def test_a_program_of_one_side_alone_is_said(tmp_path, capsys):
    more = after()
    for plane in more.planes:
        plane.lines[1].event("jit_sample(3)", 200_000, 1_000)
        plane.lines[0].event(fusion(9), 200_000, 900)
    sides = [timeline(made, tmp_path / name) for name, made in (("a", before()), ("b", more))]
    difference = diff_timelines(*sides, names=("a", "b"))
    assert [(program.program, program.step_ns) for program in difference.programs] == [
        ("jit_step", (100_000, 125_000)),
        ("jit_sample", (None, 1_000)),
    ]
    from compare.diff.profiles.print_profiles import print_profiles

    print_profiles(difference)
    assert "only B has jit_sample: 1.00 µs an execution" in capsys.readouterr().out


def test_a_program_whose_execution_has_no_time_is_not_said_to_be_of_one_side(tmp_path, capsys):
    """Both have it, without an operation."""
    made = before()
    for plane in made.planes:
        plane.lines[1].event("jit_convert(3)", 200_000, 1_000)
    same = timeline(made, tmp_path)
    difference = diff_timelines(same, same, names=("a", "a"))
    from compare.diff.profiles.print_profiles import print_profiles

    print_profiles(difference)
    printed = capsys.readouterr().out
    assert "jit_convert: how long an execution takes is not known" in printed
    assert "only" not in printed
    assert list_slower(difference, [read_condition("jit_convert.step > 5 %")]) == [
        "--fail-if 'jit_convert.step > 5 %': step of jit_convert is not known"
    ]


def written(tmp_path):
    return [str(made.write(tmp_path / name)) for name, made in (("a", before()), ("b", after()))]


def test_the_terminal_says_what_became_slower(tmp_path, capsys):
    assert main([*written(tmp_path), "--axes", "data=2,tensor=2"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any(
        line.startswith("jit_step: an execution takes 100 µs, then 125 µs: 25.0 µs (25 %) longer") for line in lines
    )
    assert "exposed communication 20.0 µs 40.0 µs +20.0 µs" in lines
    assert "/w/attention.py:13 all-reduce over tensor 0 → 1 × 0 s 15.0 µs +15.0 µs" in lines
    assert "all-reduce tensor 1 → 2 × 4.00 kB 8.00 kB 20.0 µs 40.0 µs +20.0 µs" in lines


def test_a_gate_for_continuous_integration(tmp_path, capsys):
    words = [*written(tmp_path), "--axes", "data=2,tensor=2", "--json", "--fail-if", "step > 5 %"]
    assert main(words) == 1
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["failed"] == ["--fail-if 'step > 5 %': step of jit_step is 100,000 ns, then 125,000 ns"]
    assert printed.err.splitlines() == document["failed"]
    assert document["programs"][0]["step_ns"] == [100_000, 125_000]
    assert main([*words[:-1], "step > 50 %"]) == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["PROFILE", "x.hlo"], "is a profile and"),
        (["PROFILE", "PROFILE", "--fail-if", "step"], "cannot read"),
        (["PROFILE", "PROFILE", "--topology", "v5e:2x4"], "not to profiles"),
        (["x.hlo", "x.hlo", "--fail-if", "step > 5 %"], "--fail-if applies to profiles"),
        (["PROFILE", "none.xplane.pb"], "No such file"),
    ],
)
def test_a_wrong_request_is_one_line_and_exit_2(tmp_path, capsys, monkeypatch, words, complaint):
    profile = written(tmp_path)[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.hlo").write_text("HloModule x\n")
    with pytest.raises(SystemExit) as caught:
        run_command(main, [profile if word == "PROFILE" else word for word in words])
    printed = capsys.readouterr()
    assert (caught.value.code, printed.out) == (2, "")
    assert complaint in printed.err
