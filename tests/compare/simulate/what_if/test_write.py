"""A run as it would be on another machine: a run folder like any other, whose times are simulated."""

import json
import shutil

import pytest

from compare.cli.simulate import main
from compare.render.errors import ViewError
from compare.report.programs import judge_programs
from compare.run.errors import WorkError
from compare.run.folder.chip import CHIP
from compare.run.folder.load_run import read_run
from compare.run.folder.replace_folder import SIMULATION
from compare.run.folder.run_folder import copy_run
from compare.run.folder.timelines import build_timelines
from compare.simulate.what_if.changed_machine import build_simulation
from compare.simulate.what_if.what_if_page import sections
from tests.compare.simulate.asking import answer, refuse
from tests.compare.simulate.what_if.requests import parse_what_if
from tests.places import copy_example

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    """The example run with one program."""
    return copy_example(tmp_path / "run", "jax/decode/tpu")


def read_timeline(folder):
    run = read_run(folder)
    programs = judge_programs(run.case, run.results)
    return build_timelines(programs, folder=folder).by_key["jax", "decode", "tpu"]


def test_a_run_folder_with_a_machine_has_times_simulated_on_it(folder):
    modelled = read_timeline(folder)
    simulation = build_simulation(parse_what_if([str(folder), "--scale", "ici=2"]), "v5e:2x4")
    (folder / SIMULATION).write_text(json.dumps(simulation.to_json()))
    simulated = read_timeline(folder)
    assert simulated.label == "simulated on v5e:2x4 with ici=2"
    assert simulated.num_devices == modelled.num_devices == 8
    assert simulated.steps["duration_ns"].max() < modelled.steps["duration_ns"].max()
    assert count_executions(simulated) == count_executions(modelled)


def count_executions(timeline):
    events = timeline.events[timeline.events["device"].eq(0) & timeline.events["role"].eq("communication")]
    return {name: count for name, count in events["collective"].value_counts().items() if count}


CHIP_FILE = (
    'generation = "v5e"\ncalibrated-on = "our pod, June"\n[time.link_bytes_per_s]\nvalue = 18.65e9\nunit = "byte/s"\n'
    '[time.memory_bytes_per_s]\nvalue = 4e11\nunit = "byte/s"\n[time.launch_s]\nvalue = 9e-6\nunit = "s"\n'
)
"""Slower links, memory and launches than v5e's."""


@pytest.mark.parametrize("place", ["kept", "given"])
def test_on_its_own_slice_a_calibrated_run_takes_as_long_as_modelled(folder, tmp_path, place):
    generation = read_timeline(folder)
    path = (folder if place == "kept" else tmp_path) / CHIP
    path.write_text(CHIP_FILE)
    words = ["--chip", str(path)] if place == "given" else []
    program = answer(folder, *words, "--out", tmp_path / "out")["programs"]["jax/decode/tpu"]
    (folder / CHIP).write_text(CHIP_FILE)
    modelled = read_timeline(folder).steps["duration_ns"].max()
    assert modelled > 1.2 * generation.steps["duration_ns"].max()
    assert program["step_ns"] == pytest.approx(modelled, rel=2e-6)
    assert program["on_own"] is None
    assert program["machine"] == "v5e:2x4 (calibrated on our pod, June)"
    simulated = read_timeline(tmp_path / "out")
    assert simulated.label == "simulated on v5e:2x4 (calibrated on our pod, June)"
    assert simulated.steps["duration_ns"].max() == pytest.approx(modelled, rel=2e-6)


def test_into_a_run_the_constants_are_kept_beside_the_numbers(folder, tmp_path):
    path = tmp_path / "ours.toml"
    path.write_text(CHIP_FILE)
    given = answer(folder, "--chip", path, "--into")
    assert (folder / CHIP).read_text() == 'name = "ours"\n' + path.read_text()
    assert answer(folder)["programs"] == given["programs"]  # with those that it keeps now
    assert read_timeline(folder).label.endswith(", calibrated on our pod, June")


def test_other_chips_have_the_rates_of_their_generation_and_the_calibrated_compute(folder, capsys):
    """Alone the link's rate and the launch are of the machine, and a machine of v6e has its own."""
    plain = answer(folder, "--machine", "v6e:2x4")["programs"]["jax/decode/tpu"]
    (folder / CHIP).write_text(CHIP_FILE)
    calibrated = answer(folder, "--machine", "v6e:2x4")["programs"]["jax/decode/tpu"]
    assert calibrated["machine"] == "v6e:2x4"
    assert calibrated["link_bytes_per_ns"] == plain["link_bytes_per_ns"]
    assert calibrated["compute_ns"] > 1.2 * plain["compute_ns"]
    assert main([str(folder), "--machine", "v6e:2x4"]) == 0
    head = "Simulated on v6e:2x4, not measured; compute lasts as modelled for v5e:2x4 (calibrated on our pod, June)"
    assert capsys.readouterr().out.splitlines()[0] == head


def test_a_chip_file_of_other_chips_is_one_line(folder, tmp_path):
    (tmp_path / "v4.toml").write_text(CHIP_FILE.replace("v5e", "v4"))
    assert "v4.toml: generation: " in refuse(folder, "--chip", tmp_path / "v4.toml")


@pytest.mark.parametrize("words", ["[]", '{"machine": {}, "repeat": 1, "compute": 1}', "{"])
def test_a_damaged_simulation_is_one_line(folder, words):
    (folder / SIMULATION).write_text(words)
    with pytest.raises(WorkError, match=f"{SIMULATION} cannot be read: "):
        read_timeline(folder)


def test_the_written_folder_is_a_run_folder_with_the_figure_of_its_sweep(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([str(folder), "--sweep", "ici=0.5:2:log", "--out", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        str(out / "report.html"),
        str(out / "what-if.json"),
        str(out / "figures/what-if.svg"),
    ]
    report = json.loads((out / "report.json").read_text())
    timing = report["phases"]["decode"]["arms"]["jax"]["timing"]
    assert timing["label"].startswith("simulated on v5e:2x4")
    assert (out / "tables/events.parquet").is_file()
    page = (out / "report.html").read_text()
    assert "Simulated on v5e:2x4: twice the bandwidth shortens" not in page  # 0.5 % says nothing
    assert len(json.loads((out / "what-if.json").read_text())["programs"]["jax/decode/tpu"]["sweep"]) == 5


@pytest.mark.parametrize("place", ["run", "run/../run", "link", "other"])
def test_a_run_that_is_not_simulated_is_never_replaced(folder, tmp_path, place):
    (tmp_path / "link").symlink_to(folder)
    shutil.copytree(folder, tmp_path / "other")
    target = tmp_path / place
    before = {path: path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()}
    assert "--into" in refuse(folder, "--scale", "ici=2", "--out", target)
    assert {path: path.read_bytes() for path in sorted(target.rglob("*")) if path.is_file()} == before


def test_an_earlier_simulated_run_is_replaced(folder, tmp_path):
    out = tmp_path / "out"
    for factor in (2, 4):
        assert main([str(folder), "--scale", f"ici={factor}", "--out", str(out)]) == 0
    assert read_timeline(out).label == "simulated on v5e:2x4 with ici=4"


def test_a_what_if_in_a_run_is_a_sentence_and_a_figure_of_its_page(folder, capsys):
    assert main([str(folder), "--scale", "ici=0.1", "--sweep", "ici=0.5:2:log", "--into"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        str(folder / "what-if.json"),
        str(folder / "figures/what-if.svg"),
    ]
    (section,) = sections(folder)
    assert section.blocks[0].words.startswith(
        "Simulated on v5e:2x4 with ici=0.1: twice the bandwidth shortens the decode step of JAX by "
    )
    assert len(section.blocks) == 2
    copy = folder.parent / "copy"
    copy.mkdir()
    copy_run(folder, copy)
    assert sections(copy) == [section]


@pytest.mark.parametrize(
    "programs", [{"a": 1}, {"a": {"scale_up_bw_utility": "much", "machine": "m", "phase": "decode", "title": "A"}}]
)
def test_a_damaged_what_if_is_one_line(folder, programs):
    (folder / "what-if.json").write_text(json.dumps({"programs": programs}))
    with pytest.raises(ViewError, match=r"what-if\.json is not what compare.simulate writes"):
        sections(folder)


def test_a_sweep_over_algorithms_has_a_figure_with_their_names(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([str(folder), "--sweep", "all-reduce=ring,halving-doubling", "--out", str(out)]) == 0
    assert "  halving-doubling  " in capsys.readouterr().out
    sweep = json.loads((out / "what-if.json").read_text())["programs"]["jax/decode/tpu"]["sweep"]
    assert [row["value"] for row in sweep] == ["ring", "halving-doubling"]
    figure = (out / "figures/what-if.svg").read_text()
    assert "halving-doubling" in figure
    assert "algorithms of all-reduce" in figure


def test_the_sentence_of_two_frameworks_says_what_bandwidth_hides_of_the_time_that_only_one_waits(tmp_path):
    """40 % of 5 ms; 0.05 ms of a 10 ms step is too little to be said."""

    def program(title, utility, now, twice):
        induced = {"exposed_ns": now, "twice_the_bandwidth_ns": twice}
        rest = {"machine": "m", "phase": "decode", "step_ns": 1e7, "scale_up_bw_utility": utility}
        return {"title": title, "framework_induced": induced, **rest}

    programs = {"a": program("A", 20.0, 5e6, 3e6), "b": program("B", 0.5, 5e4, 5e4)}
    (tmp_path / "what-if.json").write_text(json.dumps({"programs": programs}))
    (section,) = sections(tmp_path)
    assert [block.words for block in section.blocks] == [
        "Simulated on m: twice the bandwidth shortens the decode step of A by 20.0 % and that of B by 0.5 %; it hides "
        "40 % of the 5.00 ms that only A waits."
    ]
