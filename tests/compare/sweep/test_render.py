"""A sweep as it is drawn: one table, one figure, one page, and files for those who ask their own questions."""

import copy
import csv
import io
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.console import Console

from compare.cli.options.sweep_options import sweep_parser
from compare.cli.options.sweep_request import combinations
from compare.report.model.report import Report
from compare.sweep.render.draw import draw, page, show
from compare.sweep.render.figure import draw_ratios
from compare.sweep.render.lines import case_lines, common_words, list_reasons
from compare.sweep.render.print_sweep import print_sweep
from compare.sweep.sweep_report import build_summary, result_row
from tests.compare.sweep.sweeps import REPORT

Sweep = dict[str, Any]


def change(**lines_of: dict[str, Any]) -> dict[str, Any]:
    """The example's report, with the lines of these arms' programs changed."""
    report = copy.deepcopy(REPORT)
    for phase in report["phases"].values():
        for line in phase["headline"]:
            line |= lines_of.get(line["arm"], {})
    return report


@pytest.fixture
def sweep() -> Sweep:
    """Of a test's own, to change."""
    return copy.deepcopy(make_sweep())


@cache
def make_sweep() -> Sweep:
    """tp4pp2 as it is; dp2tp4, whose JAX crashed; dp8 of a small model, which needs nothing; ep8, refused."""
    options = sweep_parser().parse_args(["--models", "llama-3.1-8b,tiny", "--meshes", "tp4pp2,dp2tp4,ep8,dp8"])
    crash = {"status": "crashed", "error": "died of SIGABRT: <b>boom</b>", "ratio": None, "wire_bytes": None}
    nothing = {"ratio": None, "wire_bytes": 0}
    by_mesh = {"tp4pp2": REPORT, "dp2tp4": change(jax=crash), "dp8": change(jax=nothing, torchxla=nothing)}
    results = [
        result_row(each, status="refused", error=each.refused)
        if each.refused
        else result_row(
            each,
            status="failed" if each.mesh == "dp2tp4" else "done",
            folder=f"{each.model}-{each.mesh}",
            report=Report.from_json(by_mesh[each.mesh]),
        )
        for each in combinations(options)
    ]
    return build_summary(results, asked=vars(options), arms=["jax", "torchxla"])


@pytest.mark.slow
def test_a_name_of_any_length_leaves_the_figure_its_room(sweep):
    sweep["results"][0]["mesh"] = "tp" + "9" * 5000
    assert draw_ratios(sweep).svg


def test_a_ratio_of_any_size_has_an_axis(sweep):
    """Of a sweep.json that somebody else wrote."""
    for program in sweep["results"][0]["phases"]["decode"]["programs"]:
        program["ratio"] = 1.7e308
    assert draw_ratios(sweep).svg


def test_a_line_is_of_a_case_and_a_phase_with_the_arms_side_by_side(sweep: Sweep) -> None:
    lines = case_lines(sweep)
    assert [(line.mesh, line.phase) for line in lines[:4]] == [
        ("tp4pp2", "prefill"),
        ("tp4pp2", "decode"),
        ("dp2tp4", "prefill"),
        ("dp2tp4", "decode"),
    ]
    first, _, crashed, *_, idle = lines
    assert (first.needs, first.ratio("jax"), first.ratio("torchxla")) == ("3.31 GB", "1.26 ×", "1.95 ×")
    assert (first.step("jax"), first.step("torchxla")) == ("254 ms", "467 ms")
    assert (crashed.ratio("jax"), crashed.ratio("torchxla"), idle.ratio("jax")) == ("crashed", "1.95 ×", "nothing")


def test_what_all_cases_have_in_common_is_told_once_and_the_rest_in_the_row(sweep: Sweep) -> None:
    assert common_words(sweep) == ["batch 8", "1,024 tokens", "bf16"]
    first, _, other, *_ = case_lines(sweep)
    assert (first.on, first.words, first.label) == ("v5e:2x4, 8 devices", "4 microbatches", "tp4pp2")
    assert other.words == "1 microbatch"
    sweep["results"].append({**sweep["results"][0], "batch": 16, "earlier": True})
    assert case_lines(sweep)[0].label == "tp4pp2, batch 8, 4 microbatches"
    html = page(sweep, pictures=[draw_ratios(sweep)])
    for words in ("· 1,024 tokens · bf16</p>", "v5e:2x4, 8 devices", "batch 16, 4 microbatches"):
        assert words in html


def test_a_ratio_that_leaves_a_part_of_the_plan_bears_a_mark(sweep: Sweep) -> None:
    assert "¹" not in print_text(sweep)
    sweep["results"][0]["phases"]["decode"]["programs"][0] |= {"ratio": 0.5631, "unserved": 16_384}
    shown = (print_text(sweep), page(sweep, pictures=[draw_ratios(sweep)]), draw_ratios(sweep).svg.decode())
    for text in (" ".join(words.split()) for words in shown):
        assert "0.56 × ¹" in text.replace("\N{NO-BREAK SPACE}", " ")
        assert "¹ does not move all that the plan asks." in text


def test_what_is_not_there_says_why_once(sweep: Sweep) -> None:
    failed, refused = list_reasons(sweep), list_reasons(sweep, status="refused")
    assert [(reason.what, reason.status, reason.reason) for reason in failed] == [
        (f"{model} on dp2tp4: JAX tpu in prefill and 3 more", "crashed", "died of SIGABRT: <b>boom</b>")
        for model in ("llama-3.1-8b", "tiny")
    ]
    assert [reason.what for reason in refused] == ["llama-3.1-8b on ep8", "tiny on ep8"]


def print_text(sweep: Sweep, *, width: int = 100) -> str:
    out = io.StringIO()
    print_sweep(sweep, out=Console(file=out, width=width, highlight=False, markup=False))
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_the_words_fit_the_terminal(sweep: Sweep, width: int) -> None:
    said = print_text(sweep, width=width)
    assert max(map(len, said.splitlines())) <= width
    assert "1.95 ×" in said
    assert "splits experts over ep8" in said
    assert "modelled, not measured" in " ".join(said.split())


def test_the_files_hold_every_program_and_every_refusal(sweep: Sweep, tmp_path: Path) -> None:
    draw(sweep, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"sweep.{kind}" for kind in ("json", "csv", "parquet", "png", "svg", "html")
    }
    assert json.loads((tmp_path / "sweep.json").read_text()) == sweep
    # 6 cases of 2 phases and 5 programs, 2 combinations that cannot be.
    table = f"'{tmp_path}/sweep.parquet'"
    assert duckdb.sql(f"select count(*) from {table}").fetchall() == [(6 * 10 + 2,)]
    refused = f"select model, mesh, phase, error like '%has none%' from {table} where case_status = 'refused'"
    assert duckdb.sql(refused).fetchall() == [("llama-3.1-8b", "ep8", None, True), ("tiny", "ep8", None, True)]
    furthest = f"select round(max(emitted_over_inherent)) from {table} where is_default group by arm order by arm"
    assert duckdb.sql(furthest).fetchall() == [(1,), (177,)]
    rows = list(csv.DictReader((tmp_path / "sweep.csv").read_text().splitlines()))
    assert len(rows) == 62
    assert rows[0]["asked_bytes"] == "3305111640"


def test_the_figure_has_a_panel_for_each_model_and_phase(sweep: Sweep) -> None:
    svg = draw_ratios(sweep).svg.decode()
    for word in (
        "llama-3.1-8b, prefill",
        "tiny, decode",
        "dp2tp4",
        "JAX",
        "TorchXLA",
        "inherent bytes",
        "177 ×",
        "crashed",
        "refused",
        "no communication",
        "Counted in the compiled default program",
    ):
        assert word in svg
    assert svg.count("refused") == 2 * 2  # once for all arms


def test_bytes_between_slices_have_a_column_where_there_are_any(sweep: Sweep) -> None:
    assert "over DCN" not in print_text(sweep)
    sweep["results"][0]["phases"]["decode"]["programs"][0]["dcn_wire_bytes"] = 1_500_000
    assert "over DCN" in print_text(sweep)
    assert "1.50 MB" in print_text(sweep)
    assert "1.50 MB" in page(sweep, pictures=[draw_ratios(sweep)])


def test_a_sweep_in_which_nothing_was_judged_can_be_drawn(sweep: Sweep, tmp_path: Path) -> None:
    for result in sweep["results"]:
        result |= {"phases": {}, "status": "crashed", "error": "died of SIGKILL (out of memory?)", "folder": None}
    draw(sweep, tmp_path)
    assert "out of memory" in (tmp_path / "sweep.html").read_text()


@pytest.mark.slow
def test_the_same_sweep_gives_the_same_bytes(sweep: Sweep) -> None:
    first, other = draw_ratios(sweep), draw_ratios(sweep)
    assert (first.png, first.svg) == (other.png, other.svg)


def test_the_page_leads_to_each_case_and_obeys_nothing_that_a_program_said(sweep: Sweep) -> None:
    html = page(sweep, pictures=[draw_ratios(sweep)])
    assert 'href="llama-3.1-8b-tp4pp2/report.html"' in html
    assert "&lt;b&gt;boom&lt;/b&gt;" in html
    assert "<script" not in html
    assert not re.search(r"https?://", html.replace("http://www.w3.org/", ""))


def test_a_case_without_a_page_is_no_link_and_the_page_says_how_to_draw_it(sweep: Sweep, tmp_path: Path) -> None:
    (tmp_path / "llama-3.1-8b-tp4pp2").mkdir()
    (tmp_path / "llama-3.1-8b-tp4pp2/report.html").write_text("")
    draw(sweep, tmp_path)
    html = (tmp_path / "sweep.html").read_text(encoding="utf-8")
    assert re.findall(r'href="([^"]*)/report.html"', html) == ["llama-3.1-8b-tp4pp2"] * 2
    assert "Cases without a link have no page: <code>python -m compare.report FOLDER</code> draws it." in html


def test_the_last_line_is_the_path_of_the_page(sweep: Sweep, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    show(draw(sweep, tmp_path), tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == str(tmp_path / "sweep.html")
    assert max(map(len, said[:-1])) <= 100
