"""Programs that are run and measured: a toy arm's on JAX's CPU runtime; of "TPUs" it hands over a recorded profile."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from compare.report.model.report import Report
from compare.run import scheduler
from compare.run.arms import ARMS
from compare.run.cache import Cache
from compare.run.folder import replace_folder, run_folder
from compare.run.folder.load_run import is_complete, judge_run, read_run
from compare.run.folder.run_folder import measured_label
from compare.run.folder.timelines import add_times
from compare.run.results import Event
from meshes.case import Case

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("made")]  # what is measured is behind what is compiled

pytest.importorskip("libtpu", reason="needs libtpu: pip install -e '.[jax]'")


@pytest.fixture
def case() -> Case:
    return Case.read("dp2tp4", model_name="tiny", attention="einsum", phases=("decode",))


def run(case, arm, tmp_path, *, events=None, **options):
    """A run folder of this arm, and how its cells ended."""
    hear = events.append if events is not None else lambda event: None
    outcomes = scheduler.run_case(case, arms=[arm], cache=Cache(tmp_path / "cache"), notify=hear, **options)
    place = run_folder.folder_of(case, parent=tmp_path / "runs", arms=ARMS)
    with replace_folder.open_replacement(place) as into:
        run_folder.write_cells(into, case=case, outcomes=outcomes)
        run_folder.carry_measured(place, into)
    return place, {outcome.cell: outcome for outcome in outcomes}


def log(tmp_path: Path) -> Counter:
    return Counter((tmp_path / "log").read_text().split())


def report(place: Path) -> Report:
    run = judge_run(read_run(place))
    return add_times(run.report(), run.programs, run.timelines())


def test_a_measured_cell_has_its_profile_its_program_and_what_ran_it(toy, case, tmp_path):
    place, ended = run(case, toy, tmp_path, execute="cpu")
    assert {name: outcome.status for name, outcome in ended.items()} == dict.fromkeys(("tpu", "tpu+gspmd", "cpu"), "ok")
    cell = place / "toy/decode/cpu"
    assert [path.name for path in cell.glob("trace/plugins/profile/decode/*")] == ["toy.xplane.pb"]
    about = json.loads((cell / "about.json").read_text())
    shared = f"{about['executed']['cores']} core"
    assert about["label"].startswith(f"measured on 8 virtual CPU devices on {shared}")
    assert "(jaxlib), not a TPU" in about["label"]
    assert about["case"]["model"]["layers"] == 4
    assert not list((tmp_path / "cache" / "begun").iterdir())

    programs = report(place).phases["decode"].arms["toy"]
    assert "cpu" not in programs.controls
    measured = programs.profiles["cpu"]
    # By hand: one product over a dim that all devices split, five times.
    assert measured.timing.source == "measured"
    assert (measured.timing.devices, measured.timing.steps) == (8, 5)
    assert {axes: row.executions for axes, row in measured.timing.per_step.by_axes.items()} == {"dp,tp": 1}
    assert {row.kind for row in measured.collectives} == {"all-reduce"}
    assert programs.default.timing.source == "modelled"


def test_what_is_measured_is_measured_alone_after_all_that_is_compiled(toy, case, tmp_path):
    events: list[Event] = []
    run(case.at(phases=("prefill", "decode")), toy, tmp_path, events=events, execute="cpu")
    profiles = [at for at, event in enumerate(events) if event.step == "execute"]
    others = [at for at, event in enumerate(events) if event.step != "execute"]
    assert max(others) < min(profiles)
    cells = list(dict.fromkeys(events[at].phase for at in profiles))
    assert [events[at].phase for at in profiles] == sorted((events[at].phase for at in profiles), key=cells.index)


def test_it_is_measured_anew_each_time_and_kept_when_it_is_not_asked_for_again(toy, case, tmp_path):
    for _ in range(2):
        place, _ = run(case, toy, tmp_path, execute="tpu")
    assert log(tmp_path)["profile+tpu"] == 2
    before = (place / "toy/decode/tpu+run/about.json").read_text()
    place, ended = run(case, toy, tmp_path)
    assert set(ended) == {"tpu", "tpu+gspmd"}
    assert (place / "toy/decode/tpu+run/about.json").read_text() == before
    assert "tpu+run" in report(place).phases["decode"].arms["toy"].profiles


@pytest.mark.parametrize(
    ("does", "status", "error"),
    [("refuse", "refused", "no TPU is attached"), ("cut", "failed", "its profile cannot be read: ")],
)
def test_one_that_fails_is_reported_and_the_rest_stands(toy, case, tmp_path, monkeypatch, does, status, error):
    monkeypatch.setenv("TOY_PROFILE", does)
    place, _ = run(case, toy, tmp_path, execute="tpu")
    document = report(place)
    arm = document.phases["decode"].arms["toy"]
    assert arm.profiles["tpu+run"].status == status
    assert error in arm.profiles["tpu+run"].error
    assert arm.default.totals.wire_bytes > 0
    assert arm.default.timing.per_step.communication_ns > 0
    assert not is_complete(document)


def test_a_profile_that_was_damaged_later_is_named_as_it_lies_in_the_run_folder(toy, case, tmp_path):
    place, _ = run(case, toy, tmp_path, execute="tpu")
    profile = "toy/decode/tpu+run/trace/plugins/profile/decode/toy.xplane.pb"
    (place / profile).write_bytes(b"no")
    document = report(place)
    program = document.phases["decode"].arms["toy"].profiles["tpu+run"]
    assert program.timing is None
    assert program.timing_error.startswith(f"{profile}: ")
    assert not is_complete(document)


def test_on_a_tpu_the_arm_itself_runs_the_whole_case_and_on_cpu_devices_jax_s_runtime_a_small_one(toy, case):
    wide = Case.read("dp2tp4", phases=("decode",))
    on_cpu, on_tpu = (replace(toy, controls=()).cells(wide, execute=platform)[-1] for platform in ("cpu", "tpu"))
    assert (on_cpu.steps, on_tpu.steps) == (("lower", "execute"), ("profile",))
    assert on_tpu.case_of(wide) == wide
    assert on_cpu.case_of(wide).model.embed < wide.model.embed
    assert on_cpu.case_of(wide).model.layers == wide.model.layers == 32


def test_a_label_says_what_ran_it_and_what_was_cut():
    wide = Case.read("tp8", model_name="llama-3.2-1b", phases=("prefill",))
    small = wide.at(seq=16)
    cpu = {"platform": "cpu", "num_devices": 8, "runtime": "jax"}
    tpu = {"platform": "tpu", "num_devices": 8, "runtime": "torch_xla", "device_kind": "TPU v5 lite"}
    assert measured_label(wide, small, cpu) == "measured on 8 virtual CPU devices (jax), not a TPU; seq 1024 → 16"
    alone = cpu | {"num_devices": 1, "cores": 2}
    assert measured_label(wide, wide, alone) == "measured on 1 virtual CPU device on 2 cores (jax), not a TPU"
    assert measured_label(wide, wide, tpu) == "measured on 8 devices (TPU v5 lite; torch_xla)"
