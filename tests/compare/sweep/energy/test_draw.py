"""Figures, table and page of a sweep's energy."""

import copy
import json
import re
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from compare.render.picture import draw_all
from compare.sweep.energy.energy_lines import energy_lines
from compare.sweep.energy.energy_table import HEADINGS, cells, print_energy
from compare.sweep.energy.measure import add_energy
from compare.sweep.energy.sweep_figures import draw_microbatches, list_energy
from compare.sweep.render.draw import draw, programs
from compare.sweep.sweep_report import check_sweep
from tests.compare.sweep.energy.test_kernels import example
from tests.compare.sweep.energy.test_measure import make_sweep

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    return add_energy(make_sweep(folder), folder)


@pytest.fixture
def sweep(measured):
    """Of the documentation's run, and of a case that does not fit."""
    return copy.deepcopy(measured)


@pytest.fixture
def wide(sweep):
    return widened(sweep)


def widened(sweep):
    """The same, with 8 microbatches, and a program with other compiler options."""
    row, refused = sweep["results"]
    other = {**row, "microbatches": 8}
    phases = {
        name: {
            **phase,
            "programs": [
                *phase["programs"],
                *(
                    {
                        **program,
                        "cell": "tpu+xla-async-off",
                        "is_default": False,
                        "modelled_step_ns": 2 * program["modelled_step_ns"],
                    }
                    for program in phase["programs"]
                    if program["is_default"]
                ),
            ],
        }
        for name, phase in row["phases"].items()
    }
    return {**sweep, "results": [{**row, "phases": phases}, other, refused]}


@pytest.fixture(scope="module")
def pictures(measured):
    return draw_all(list_energy(energy_lines(widened(copy.deepcopy(measured)))).values())


def svg(drawing):
    return drawing().svg.decode()


def test_every_figure_that_has_something_to_show_is_drawn_the_same_twice(wide, pictures):
    again = draw_all(list_energy(energy_lines(wide)).values())
    assert [picture.name for picture in pictures] == [
        f"energy-{what}-llama-3.1-8b-{phase}"
        for phase in ("prefill", "decode")
        for what in ("layouts", "microbatches", "options", "kernels", "chips")
    ]
    assert [picture.svg for picture in pictures] == [picture.svg for picture in again]
    by_name = {picture.name: picture.svg.decode() for picture in pictures}
    layouts = by_name["energy-layouts-llama-3.1-8b-decode"]
    assert "tp4pp2 m4" in layouts
    assert "does not fit the memory" in layouts
    assert "2.000" in by_name["energy-options-llama-3.1-8b-decode"]
    assert "matmul" in by_name["energy-kernels-llama-3.1-8b-decode"]
    assert {"Modelled, not measured" in svg for svg in by_name.values()} == {True}


def test_a_marker_at_the_edge_of_its_panel_is_whole(pictures):
    """Matplotlib cuts what it draws at a panel's sides, if not told otherwise: no marker has a clip."""
    (layouts, *_) = pictures
    marks = re.findall(r'<g(?: clip-path="[^"]*")?>\s*<use [^>]*style="fill: #(?:147a70|b8442c)', layouts.svg.decode())
    assert marks
    assert not [mark for mark in marks if "clip-path" in mark]


def test_options_that_leave_the_program_say_so_and_are_no_bar_of_their_own(wide):
    for phase in wide["results"][0]["phases"].values():
        for program in phase["programs"]:
            if program["arm"] == "torchxla" and program["cell"] == "tpu+xla-async-off":
                program["same_program"] = True
    check_sweep(json.loads(json.dumps(wide)))
    lines = energy_lines(wide)
    drawings = list_energy(lines)
    options, kernels = (svg(drawings[f"energy-{what}-llama-3.1-8b-decode"]) for what in ("options", "kernels"))
    assert options.count(">the same program<") == 2  # time and energy
    assert options.count(">2.000<") == 1  # of JAX, whose time is twice as long
    assert "JAX, async-off" in kernels
    assert "TorchXLA, async-off" not in kernels
    assert "Options that leave the program as it is are left out" in kernels
    out = Console(width=100, record=True, file=StringIO())
    print_energy(lines, out=out)
    text = " ".join(out.export_text().split())
    assert "TorchXLA, async-off (the same program)" in text
    assert ", JAX, async-off (the same program)" not in text
    table = programs(wide).set_index(["arm", "cell", "phase"])["same_program"]
    assert set(table[table.notna()].items()) == {
        (("torchxla", "tpu+xla-async-off", phase), True) for phase in ("prefill", "decode")
    }


def test_one_to_64_microbatches_are_seven_ticks_with_ranges(wide):
    row = wide["results"][1]
    rows = [{**row, "microbatches": 2**power} for power in range(7)]
    drawn = svg(list_energy(energy_lines({**wide, "results": rows}))["energy-microbatches-llama-3.1-8b-decode"])
    for number in (1, 2, 4, 8, 16, 32, 64):
        assert drawn.count(f">{number}<") >= 4  # a tick in each panel
    exposed = drawn[drawn.index("exposed ÷ step") - 6000 :]
    assert "bars are the ranges of the coefficients" in drawn
    assert not re.search(r">\d+m<", exposed)


@pytest.mark.parametrize(("step_ns", "has_peak"), [(0.9e6, False), (1.9e6, False), (2e6, True)])
def test_a_step_of_one_window_of_power_has_no_peak(wide, step_ns, has_peak):
    """A window is 1 ms: below two of them the step has one, whose mean is the step's."""
    line = replace(energy_lines(wide)[2], step_ns=step_ns)
    assert (line.peak_w is not None) is has_peak
    assert (cells(line)[-2] == "–") is not has_peak


def test_microbatches_without_a_peak_have_no_point_for_it(wide):
    line = energy_lines(wide)[2]
    points = {}
    for step_ns in (1e6, 2e6):
        curve = [replace(line, step_ns=step_ns, microbatches=number) for number in (1, 2, 4)]
        points[step_ns] = draw_microbatches([curve], name="m", title="t").svg.decode().count("<use ")
    assert points[2e6] - points[1e6] == 3


def test_the_map_of_chips_has_the_bytes_that_each_sends_over_ici(sweep):
    phases = sweep["results"][0]["phases"]
    chips = {
        (phase, program["arm"]): program["energy"]["chips"]
        for phase, summary in phases.items()
        for program in summary["programs"]
        if "energy" in program
    }
    report, _ = example()
    for (phase, arm), rows in chips.items():
        wire_bytes = report.phases[phase].arms[arm].default.totals.wire_bytes
        assert sum(chip["ici_bytes"] for chip in rows) == pytest.approx(8 * wire_bytes)
    name = "energy-chips-llama-3.1-8b-decode"
    assert "ICI bytes of a step" in svg(list_energy(energy_lines(sweep))[name])
    for rows in chips.values():  # as earlier versions wrote it
        for chip in rows:
            del chip["ici_bytes"]
    assert list_energy(energy_lines(sweep))[name]().name == name


def test_a_sweep_of_one_layout_has_no_curves_and_no_options(sweep):
    assert not [name for name in list_energy(energy_lines(sweep)) if re.search("microbatches|options", name)]


def test_the_table_has_the_numbers_of_the_report_with_their_ranges(sweep):
    lines = energy_lines(sweep)
    out = Console(width=100, record=True, file=StringIO())
    print_energy(lines, out=out)
    text = out.export_text()
    energy = lines[2].energy
    assert f"{energy['per_token_j']:.2f} J ({energy['low_per_token_j']:.3g}–{energy['high_per_token_j']:.3g})" in text
    assert max(map(len, text.splitlines())) <= 100
    assert len(cells(lines[2])) == len(HEADINGS)
    assert cells(lines[-1]) == ()


def test_the_page_has_the_figures_and_says_what_does_not_fit(sweep, tmp_path):
    draw(sweep, tmp_path)
    html = (tmp_path / "sweep.html").read_text()
    assert html.count('<figure class="picture">') == 1 + 2 * 3
    assert "does not fit the memory" in html
    assert "<script" not in html
    assert (tmp_path / "energy-chips-llama-3.1-8b-prefill.svg").is_file()


def test_a_narrow_terminal_gets_lines(sweep):
    lines = energy_lines(sweep)
    out = Console(width=60, record=True, file=StringIO())
    print_energy(lines, out=out)
    text = out.export_text()
    assert max(map(len, text.splitlines())) <= 60
    assert "llama-3.1-8b tp4pp2, decode, TorchXLA: " in text
    assert "of the best" in " ".join(text.split())
