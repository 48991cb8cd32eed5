"""`compare.energy RUN`, and `--chip FILE` of it and of `compare.report`: the example's decode programs."""

import json
import shutil
from dataclasses import replace

import pytest

from compare.cli import report as redraw
from compare.cli.energy import main
from compare.network.machines.changes import scale_machine
from compare.network.machines.kinds import RING
from compare.network.machines.machine import Algorithm, Algorithms
from compare.network.machines.tpu import tpu_machine
from compare.network.programs.simulation import Simulation
from compare.run.errors import WorkError
from compare.run.folder.chip import CHIP, OLD_CHIP
from compare.run.folder.replace_folder import SIMULATION
from tests.places import copy_example, example_report

pytestmark = pytest.mark.slow

PROGRAMS = ("jax/decode/tpu", "torchxla/decode/tpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The default decode programs of the README's run."""
    return copy_example(tmp_path_factory.mktemp("energy") / "run", *PROGRAMS, phases=["decode"])


def write(path, *, static):
    path.write_text(f'name = "ours"\n[energy.static]\nvalue = {static}\nunit = "W"\nstanding = "measured"\n')
    return path


def ask(capsys, *words):
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_prints_the_energies_of_the_report(run, capsys):
    answer = ask(capsys, run)
    for arm, default in example_report()["phases"]["decode"]["arms"].items():
        assert answer["phases"]["decode"]["arms"][arm]["tpu"] == default["energy"]
    assert answer["energy_model"] == example_report()["energy_model"]
    difference = answer["phases"]["decode"]["difference"]
    assert (difference["left"]["arm"], difference["right"]["arm"]) == ("jax", "torchxla")
    assert sum(difference["by_component_j"].values()) == pytest.approx(difference["difference_j"], rel=1e-12)


def test_other_coefficients_move_their_component_alone_and_nothing_is_written(run, capsys, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    usual = ask(capsys, run)["phases"]["decode"]["arms"]
    twice = ask(capsys, run, "--chip", write(tmp_path / "ours.toml", static=2 * 64))["phases"]["decode"]["arms"]
    for arm in usual:
        parts, others = (energies[arm]["tpu"]["by_component_j"] for energies in (usual, twice))
        assert others["static"] == pytest.approx(2 * parts["static"], rel=1e-8)
        assert {**others, "static": 0} == {**parts, "static": 0}
        assert twice[arm]["tpu"]["amounts"] == usual[arm]["tpu"]["amounts"]
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_in_words_it_has_ranges_and_fits_100_columns(run, capsys):
    assert main([str(run)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Energy, modelled: a TorchXLA decode step takes 22.4 J (18.1–30.7), of which")
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ('[energy.static]\nvalue = -1\nunit = "W"\n', r"own\.toml: energy\.static\.value: -1 is out of range"),
        ('generation = "v4"\n', r"own\.toml: generation: this file is of 'v4', the chips are v5e"),
        (None, r"own\.toml: No such file or directory"),
    ],
)
def test_coefficients_that_cannot_be_meant_are_one_line(run, tmp_path, words, says):
    path = tmp_path / "own.toml"
    if words is not None:
        path.write_text(words)
    out = [[], ["--out", str(tmp_path / "out")]]
    for command in (main, redraw.main):
        with pytest.raises(WorkError, match=says) as caught:
            command([str(run), "--chip", str(path), *out[command is redraw.main]])
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_the_earlier_option_goes_on_with_a_line_that_says_the_new_one(run, capsys, tmp_path):
    path = write(tmp_path / "ours.toml", static=60)
    now = ask(capsys, run, "--chip", str(path))
    assert main([str(run), "--power", str(path), "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == now
    assert said.err.splitlines() == [f"note: --power is --chip now: write --chip {path}"]
    assert main([str(run), "--power", str(path), "--json", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_the_earlier_name_of_the_file_in_a_run_is_read_and_changed(run, capsys, tmp_path):
    """A run folder of before: `power.toml`, whose figures stay, as `chip.toml`."""
    place = tmp_path / "run"
    shutil.copytree(run, place)
    path = write(place / OLD_CHIP, static=60)
    words = path.read_bytes()
    given = tmp_path / "given.toml"
    given.write_bytes(words)
    now = ask(capsys, run, "--chip", str(given))
    for _ in range(2):
        assert main([str(place), "--json"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"note: {path} is called chip.toml now; compare.report {place} renames it"
    assert redraw.main([str(place)]) == 0
    assert not path.exists()
    assert (place / CHIP).read_bytes() == words
    capsys.readouterr()
    assert ask(capsys, place)["phases"] == now["phases"]


def test_a_data_sheet_of_ones_own_is_the_peak_that_a_step_is_held_to(run, tmp_path):
    """Of twice the FLOP/s: the same step, half the use of the peak."""
    path = tmp_path / "own.toml"
    path.write_text('name = "own"\n[sheet.bf16_flops]\nvalue = 394e12\nunit = "FLOP/s"\n')
    assert redraw.main([str(run), "--out", str(tmp_path / "out"), "--chip", str(path)]) == 0
    own, usual = (
        report["phases"]["decode"]["arms"]["jax"]["timing"]
        for report in (json.loads((tmp_path / "out" / "report.json").read_text()), example_report())
    )
    assert own["per_step"] == usual["per_step"]
    assert own["work"]["mfu"] == pytest.approx(usual["work"]["mfu"] / 2, rel=1e-6)


def simulated(run, place, simulation):
    """The energies of a copy of the run on another machine, and its report."""
    shutil.copytree(run, place)
    (place / SIMULATION).write_text(json.dumps(simulation.to_json()))
    assert redraw.main([str(place)]) == 0
    report = json.loads((place / "report.json").read_text())
    return {phase: part["arms"]["jax"] for phase, part in report["phases"].items()}, report


def test_on_slower_links_of_its_own_slice_the_work_is_the_same_and_static_power_lasts_longer(run, tmp_path):
    """Joules of what is done are those of the run; static ones grow as the step does; the sum is theirs."""
    machine = tpu_machine("v5e:2x4")
    plain, _ = simulated(run, tmp_path / "plain", Simulation(machine=machine))
    slow, report = simulated(run, tmp_path / "slow", Simulation(machine=scale_machine(machine, "ici", 0.5)))
    own = example_report()["phases"]["decode"]["arms"]["jax"]
    assert plain["decode"]["energy"]["step_j"] == pytest.approx(own["energy"]["step_j"], rel=1e-6)
    before, after = (arms["decode"]["energy"]["by_component_j"] for arms in (plain, slow))
    steps = [arms["decode"]["timing"]["per_step"]["step_ns"] for arms in (plain, slow)]
    assert steps[1] > steps[0]
    assert {name: after[name] for name in after if name != "static"} == pytest.approx(
        {name: before[name] for name in before if name != "static"}, rel=1e-9
    )
    assert after["static"] == pytest.approx(before["static"] * steps[1] / steps[0], rel=1e-6)
    assert slow["decode"]["energy"]["step_j"] == pytest.approx(sum(after.values()), rel=1e-9)
    assert "energy_model" in report
    assert "a byte over a faster link is taken to cost the same" in slow["decode"]["timing"]["notes"][-1]


def test_on_a_machine_of_another_shape_there_is_no_energy_and_it_says_why(run, tmp_path):
    machine = tpu_machine("v5e:2x4")
    ring = replace(machine, dims=(replace(machine.dims[0], size=8),), algorithms=Algorithms.alike((Algorithm(RING),)))
    arms, report = simulated(run, tmp_path / "ring", Simulation(machine=ring))
    assert "energy_model" not in report
    assert "energy" not in arms["decode"]
    assert arms["decode"]["timing"]["notes"][-1].startswith("no joules: ")
    with pytest.raises(WorkError, match=r"has no program whose step was modelled; no joules: .* another shape"):
        main([str(tmp_path / "ring")])


def test_a_drawn_run_keeps_its_coefficients(run, capsys, tmp_path):
    """Drawn again without naming them, they are still there; a report says whose they are."""
    place = tmp_path / "run"
    path = write(tmp_path / "ours.toml", static=60)
    assert redraw.main([str(run), "--out", str(place), "--chip", str(path)]) == 0
    assert (place / CHIP).read_bytes() == path.read_bytes()
    path.unlink()
    assert redraw.main([str(place)]) == 0
    report = json.loads((place / "report.json").read_text())
    assert report["energy_model"]["name"] == "ours"
    assert report["energy_model"]["coefficients"]["static"]["standing"] == "measured"
    energy = report["phases"]["decode"]["arms"]["jax"]["energy"]
    chip_s = sum(part["chip_s"] for part in energy["amounts"].values())
    assert energy["by_component_j"]["static"] == pytest.approx(60 * chip_s, rel=1e-8)
    assert redraw.main([str(run), "--out", str(place)]) == 0
    assert not (place / CHIP).exists()
    assert "those of ours" not in (place / "report.html").read_text()
    assert "energy_model" in json.loads((place / "report.json").read_text())
    assert capsys.readouterr().out
