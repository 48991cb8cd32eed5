"""Figures: the same bytes from the same report, and room for many devices."""

from pathlib import Path
from typing import Any

import pytest

from compare.render.figures import draw_matrices
from compare.render.picture import Picture, save
from tests.compare.render.from_json import pictures, programs_of, traffic
from tests.compare.render.reports import make_report, row

pytestmark = pytest.mark.slow

Report = dict[str, Any]


@pytest.fixture(scope="module")
def drawn() -> list[Picture]:
    return pictures(make_report())


def test_each_arm_has_its_traffic_and_the_phases_share_the_bars(drawn: list[Picture]) -> None:
    assert [picture.name for picture in drawn] == [
        "verdicts",
        "traffic-prefill-jax",
        "traffic-prefill-torchxla",
    ]


def test_a_figure_names_bytes_verdicts_and_programs(drawn: list[Picture]) -> None:
    svg = drawn[0].svg.decode()
    for word in ("inherent", "inflated", "induced", "the plan needs", "TorchXLA", "tpu+einsum", "5.75 GB"):
        assert word in svg


def test_a_figure_that_stands_alone_says_whose_bytes_they_are_and_that_they_are_counted(drawn: list[Picture]) -> None:
    bars, matrix, other = (picture.svg.decode() for picture in drawn)
    for svg in (bars, matrix, other):
        assert "counted in compiled programs, not measured" in svg
    assert "llama-3.1-8b on pp2tp4 (v5e:2x4)" in bars
    assert "prefill: logical bytes from device to device in one step of JAX tpu" in matrix
    assert "one step of TorchXLA tpu" in other


def test_the_same_report_gives_the_same_bytes(drawn: list[Picture]) -> None:
    assert [(a.png, a.svg) for a in pictures(make_report())] == [(b.png, b.svg) for b in drawn]


def test_both_forms_are_written(drawn: list[Picture], tmp_path: Path) -> None:
    save(drawn, tmp_path / "figures")
    assert (tmp_path / "figures" / "verdicts.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "figures" / "traffic-prefill-jax.svg").read_bytes()


def test_a_failed_arm_has_an_empty_bar_and_no_traffic(failed_report: Report) -> None:
    failed = pictures(failed_report)
    assert [item.name for item in failed] == ["verdicts", "traffic-prefill-jax"]
    assert "not installed" in failed[0].svg.decode()


def test_256_devices_fit(report: Report) -> None:
    groups = [list(range(at, at + 16)) for at in range(0, 256, 16)]
    table = traffic([row("a", "all-reduce", "tp", "x", step_wire_bytes=10**9, groups=groups)], num_devices=256)
    picture = draw_matrices(next(programs_of(report)), table, top=float(table.total.max()), num_devices=256)
    assert len(picture.svg) < 60_000
    assert len(picture.png) < 200_000


@pytest.mark.parametrize("title", ["$x^2", "a&b<script>", "%s {0}"])
def test_words_of_a_program_are_drawn_as_they_are(report: Report, title: str) -> None:
    for line in report["phases"]["prefill"]["headline"]:
        line["title"] = title
    assert b"<script>" not in pictures(report)[0].svg
