"""Figures, table and page of a sweep's energy."""

import re
from io import StringIO

from rich.console import Console

from compare.sweep.energy.figures import draw_energy
from compare.sweep.energy.lines import energy_lines
from compare.sweep.energy.measure import add_energy
from compare.sweep.energy.text import HEADINGS, cells, print_energy
from compare.sweep.render.draw import draw
from tests.compare.sweep.energy.test_measure import make_sweep


def make_lines(folder):
    """Those of the documentation's run, the same with 8 microbatches, and a program with other compiler options."""
    sweep = add_energy(make_sweep(folder), folder)
    row, refused = sweep["results"]
    other = {**row, "microbatches": 8}
    phases = {name: {**phase, "programs": [*phase["programs"], *(
        {**program, "cell": "tpu+xla-async-off", "is_default": False,
         "modelled_step_ns": 2 * program["modelled_step_ns"]}
        for program in phase["programs"] if program["is_default"]
    )]} for name, phase in row["phases"].items()}  # fmt: skip
    return {**sweep, "results": [{**row, "phases": phases}, other, refused]}


def test_every_figure_that_has_something_to_show_is_drawn_the_same_twice(tmp_path):
    lines = energy_lines(make_lines(tmp_path))
    pictures, again = draw_energy(lines), draw_energy(lines)
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


def test_a_sweep_of_one_layout_has_no_curves_and_no_options(tmp_path):
    lines = energy_lines(add_energy(make_sweep(tmp_path), tmp_path))
    assert not [picture for picture in draw_energy(lines) if re.search("microbatches|options", picture.name)]


def test_the_table_has_the_numbers_of_the_report_with_their_ranges(tmp_path):
    lines = energy_lines(add_energy(make_sweep(tmp_path), tmp_path))
    out = Console(width=100, record=True, file=StringIO())
    print_energy(lines, out=out)
    text = out.export_text()
    energy = lines[2].energy
    assert f"{energy['per_token_j']:.2f} J ({energy['low_per_token_j']:.3g}–{energy['high_per_token_j']:.3g})" in text
    assert max(map(len, text.splitlines())) <= 100
    assert len(cells(lines[2])) == len(HEADINGS)
    assert cells(lines[-1]) == ()


def test_the_page_has_the_figures_and_says_what_does_not_fit(tmp_path):
    draw(add_energy(make_sweep(tmp_path), tmp_path), tmp_path)
    html = (tmp_path / "sweep.html").read_text()
    assert html.count('<figure class="picture">') == 1 + 2 * 3
    assert "does not fit the memory" in html
    assert "<script" not in html
    assert (tmp_path / "energy-chips-llama-3.1-8b-prefill.svg").is_file()


def test_a_narrow_terminal_gets_lines(tmp_path):
    lines = energy_lines(add_energy(make_sweep(tmp_path), tmp_path))
    out = Console(width=60, record=True, file=StringIO())
    print_energy(lines, out=out)
    text = out.export_text()
    assert max(map(len, text.splitlines())) <= 60
    assert "llama-3.1-8b tp4pp2, decode, TorchXLA: " in text
    assert "of the best" in " ".join(text.split())
