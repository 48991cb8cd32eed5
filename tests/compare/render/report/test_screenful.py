"""What `compare.run --mesh tp4pp2` prints: an answer that fits a screen, and with `--details` every table.

The run is docs/example-run, made by that command; its numbers are those of its report.json.
"""

import json
from pathlib import Path

import pytest

from tests.compare.render.from_json import show
from tests.places import ROOT

MOST_LINES = 45

EXAMPLE = json.loads((ROOT / "docs/example-run/report.json").read_text(encoding="utf-8"))


def print_lines(capsys: pytest.CaptureFixture[str], *, details: bool = False) -> list[str]:
    show(EXAMPLE, Path("run"), details=details)
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return print_lines(capsys)


def test_the_answer_fits_a_screen(lines: list[str]) -> None:
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= 100


def test_the_sentences_come_first_and_the_page_s_path_last(lines: list[str]) -> None:
    head = " ".join(lines[: lines.index("")])
    assert head.startswith(EXAMPLE["sentence"])
    assert "in avoidable exposed communication" in head
    assert lines[-1] == "run/report.html"


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_each_phase_has_one_table_with_a_line_for_each_program(lines: list[str], phase: str) -> None:
    (first,) = [number for number, line in enumerate(lines) if line.startswith(f"{phase.capitalize()}: the plan")]
    rows = lines[first + 4 : first + 4 + len(EXAMPLE["phases"][phase]["headline"])]
    programs = [f"{line['title']} {line['cell']}" for line in EXAMPLE["phases"][phase]["headline"]]
    assert [row.split("  ")[0] for row in rows] == programs
    assert sum(line.startswith("───") for line in lines) == 2


def test_the_largest_differences_have_their_cause_and_line_of_source(lines: list[str]) -> None:
    for name, phase in EXAMPLE["phases"].items():
        text = "\n".join(lines).partition(f"{name.capitalize()}: the plan")[2]
        largest = max(phase["differences"], key=lambda entry: entry["excess_bytes"])
        place = f"TorchXLA: {largest['kind']} over {largest['axes']} in {largest['scope']}"
        after = text[text.index(place) :].splitlines()[1]
        assert f"{largest['verdict']}, {largest['cause']}; {largest['source_line']}; absent in tpu+einsum" in after


def test_the_details_have_the_times_the_passes_the_attribution_and_the_controls(
    lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    more = print_lines(capsys, details=True)
    for words in (
        "Prefill: time per step, modelled",
        "Attribution of the bytes beyond the plan (default programs)",
        "What each control removes",
        "TorchXLA: 567 MB attributed to the attention call",
    ):
        assert any(line.startswith(words) for line in more), words
        assert not any(line.startswith(words) for line in lines), words
    assert more[-1] == "run/report.html"


def test_a_terminal_of_60_columns_has_every_program_as_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compare.render.terminal.WIDTH", 60)
    narrow = print_lines(capsys)
    assert max(map(len, narrow)) <= 60
    assert any(line.startswith("TorchXLA tpu+einsum: inherent 3.31 GB") for line in narrow)
    assert len(narrow) <= 80  # the sentences alone are 15 lines, and no table fits
