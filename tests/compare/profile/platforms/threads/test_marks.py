"""The steps that a program marks, as its devices see them, by hand."""

from tests.compare.profile.platforms.threads.host import Host, list_rows


def find(run, device=0):
    return {"run_id": run, "device_ordinal": device}


def steps(host, folder):
    marks = host.raw(folder).steps
    return None if marks is None else list_rows(marks, "device", "step", "start_ns", "duration_ns")


def launch(host, run, at):
    """A run of one device, launched at this time."""
    host["main"].event("CommonPjRtLoadedExecutable::Execute (jit_f)", at, at + 5, run_id=run, _pt=5, _p=run)


def test_a_step_that_is_waited_for_lasts_as_long_as_its_mark(tmp_path):
    host = Host()
    for step in range(2):
        host["main"].marks(step + 5, 100 * step, 100 * step + 90)
        host["worker"].op("dot", 100 * step + 10, 100 * step + 80, **find(step))
    assert steps(host, tmp_path) == [(0, 5, 0, 90), (0, 6, 100, 90)]


def test_what_was_launched_in_a_step_belongs_to_it_when_it_runs_later(tmp_path):
    host = Host()
    for step in range(3):
        host["main"].marks(step, 10 * step, 10 * step + 8)
        launch(host, 70 + step, 10 * step + 2)
        host["main"].hands_over(step + 1, at=10 * step + 4)
        begins = 100 + 100 * step
        host["worker"].region(step + 1, begins - 1, begins + 99).op("dot", begins, begins + 90, **find(70 + step))
    assert steps(host, tmp_path) == [(0, 0, 0, 190), (0, 1, 190, 100), (0, 2, 290, 100)]


def test_each_device_has_steps_of_its_own(tmp_path):
    host = Host()
    host["main"].marks(0, 0, 10).marks(1, 20, 30)
    for device, late in ((0, 0), (1, 50)):
        for step in range(2):
            start = 20 * step + 2
            host[f"{device}"].op("dot", start, start + 5 + late * step, **find(step, device))
    assert sorted(steps(host, tmp_path)) == [(0, 0, 0, 10), (0, 1, 20, 10), (1, 0, 0, 10), (1, 1, 20, 57)]


def test_marks_of_other_words_are_not_steps_and_several_threads_mark_one(tmp_path):
    host = Host()
    host["main"].marks(0, 0, 40).marks(1, 50, 90).marks(9, 1, 3, word="inner")
    host["other"].marks(0, 5, 45)
    host["worker"].op("dot", 10, 20, **find(1)).op("dot", 60, 70, **find(2))
    assert steps(host, tmp_path) == [(0, 0, 0, 45), (0, 1, 50, 40)]


def test_numbers_that_come_again_are_counted_on(tmp_path):
    host = Host()
    for time, number in enumerate((0, 1, 0, 1)):
        host["main"].marks(number, 100 * time, 100 * time + 50)
        host["worker"].op("dot", 100 * time + 10, 100 * time + 20, **find(time))
    assert [step for _, step, *_ in steps(host, tmp_path)] == [0, 1, 2, 3]


def test_marks_in_which_little_is_launched_are_no_steps(tmp_path):
    host = Host()
    host["main"].marks(0, 0, 10)
    for run in range(3):
        host["worker"].op("dot", 100 * run + 5, 100 * run + 9, **find(run))
    assert steps(host, tmp_path) is None


def test_no_marks_no_steps(tmp_path):
    host = Host()
    host["worker"].op("dot", 10, 20, **find(1))
    assert steps(host, tmp_path) is None
