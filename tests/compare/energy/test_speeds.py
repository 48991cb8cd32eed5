"""`compare.energy RUN --frequency --marginal`, on the example run."""

import json
import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from compare.cli.energy import main
from compare.cli.options.energy_request import parse_frequencies
from compare.energy.amounts import Span
from compare.energy.core_speed import Marginal, Workload
from compare.energy.speeds.frequency import list_frequency_lines
from compare.energy.speeds.marginal import Margins, list_marginal_lines
from compare.energy.speeds.subjects import SpeedSubject, Subjects, list_voltages
from compare.energy.voltage import Voltage
from compare.timeline.errors import TimingError
from meshes.devices.generations import GENERATIONS
from tests.commands import check_refusal, run_here
from tests.places import EXAMPLE, ROOT, example_report


class Answer(NamedTuple):
    document: dict
    lines: list
    figure: str


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """Both questions as JSON, with the figure; what would be printed besides."""
    path = tmp_path_factory.mktemp("speeds") / "curves.svg"
    documents, lines = [], []
    with pytest.MonkeyPatch.context() as patch:
        module = "compare.energy.speeds.frequency"
        patch.setattr("compare.cli.energy.print_json", documents.append)
        patch.setattr(f"{module}.list_frequency_lines", lambda *of: lines.extend(list_frequency_lines(*of)) or lines)
        words = ["--frequency", "0.5:1.1:0.1", "--marginal", "--figure", str(path), "--json"]
        assert main([str(EXAMPLE), *words]) == 0
    return Answer(json.loads(json.dumps(documents[0])), lines, path.read_text())


def programs():
    for phase, entry in example_report()["phases"].items():
        for arm, cells in entry["arms"].items():
            yield phase, arm, cells


def energy_of(phase, arm):
    (entry,) = (program for name, of, program in programs() if (name, of) == (phase, arm))
    return entry["energy"], entry["timing"]["per_step"]["step_ns"]


@pytest.mark.slow
def test_at_the_nominal_frequency_the_energy_is_the_reports(answer):
    assert answer.document["voltage"] == (
        "V/V0 = 1 - 0.5 (1 - f/f0), assumed (γ 0 to 1); of static power 29% (6% to 70%) follow the core's voltage"
    )
    assert len(answer.document["frequency"]) == 4
    for curve in answer.document["frequency"]:
        energy, step_ns = energy_of(curve["phase"], curve["arm"])
        slow, nominal = (next(p for p in curve["points"] if p["frequency"] == f) for f in (0.5, 1.0))
        assert nominal["step_j"] == pytest.approx(energy["step_j"], rel=1e-6)
        assert nominal["low_j"] == pytest.approx(energy["low_j"], rel=1e-6)
        assert nominal["step_ns"] == pytest.approx(step_ns, rel=1e-6)
        assert slow["voltage"] == 0.75
        assert step_ns < slow["step_ns"] < 2 * step_ns


@pytest.mark.slow
def test_at_half_the_frequency_only_the_core_and_its_static_power_spend_less(answer):
    """Matrix and vector × 0.75², 29 % of static × 0.75 for the longer step, memory and networks as they were."""
    for curve in answer.document["frequency"]:
        energy, step_ns = energy_of(curve["phase"], curve["arm"])
        slow, parts = curve["points"][0], energy["by_component_j"]
        static = parts["static"] * (0.71 + 0.29 * 0.75) * slow["step_ns"] / step_ns
        by_hand = 0.5625 * (parts["matrix"] + parts["vector"]) + parts["memory"] + parts["ici"] + parts["dcn"] + static
        assert slow["step_j"] == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.slow
def test_both_options_agree_on_what_a_faster_core_does(answer):
    """The slope of the energies at 0.9 and 1.1 of the frequency is the marginal efficiency of compute, which is one
    over ±1 %: to 0.02, where a rule of its own for each was 0.34 to 0.41 apart."""
    margins = {(each["arm"], each["phase"]): each["parts"]["compute"] for each in answer.document["marginal"]}
    assert len(margins) == 4
    for curve in answer.document["frequency"]:
        slow, fast = (next(p for p in curve["points"] if p["frequency"] == f) for f in (0.9, 1.1))
        slope = -np.log(fast["step_j"] / slow["step_j"]) / np.log(1.1 / 0.9)
        assert margins[curve["arm"], curve["phase"]]["efficiency"] == pytest.approx(slope, abs=0.02)


@pytest.mark.slow
def test_marginal_efficiency_is_the_formula_on_every_program(answer):
    """(P_static · (t_bound − γ · κ · step) − 2γ · E_dyn) ÷ E, κ 29 % for compute; what the parts bind is no more than
    the step."""
    for each in answer.document["marginal"]:
        energy, step_ns = energy_of(each["phase"], each["arm"])
        static_w = energy["by_component_j"]["static"] / step_ns
        spent = energy["by_component_j"]
        dynamic = {"compute": spent["matrix"] + spent["vector"], "memory": spent["memory"], "ici": spent["ici"]}
        assert set(each["parts"]) == set(dynamic)
        for part, row in each["parts"].items():
            on_rail = 0.5 * 0.29 * step_ns if part == "compute" else 0.0
            by_hand = (static_w * (row["bound_ns"] - on_rail) - 2 * 0.5 * dynamic[part]) / energy["step_j"]
            assert row["efficiency"] == pytest.approx(by_hand, abs=1e-3)
            assert row["low"] - 1e-3 <= row["efficiency"] <= row["high"] + 1e-3
        assert sum(row["bound_ns"] for row in each["parts"].values()) <= 1.001 * step_ns


@pytest.mark.slow
def test_products_that_read_weights_follow_the_memory_and_not_the_clock(answer):
    """JAX's decode step reads 8.6 GB of weights on each device."""
    (decode,) = (each for each in answer.document["marginal"] if (each["phase"], each["arm"]) == ("decode", "jax"))
    assert decode["parts"]["memory"]["bound_ns"] > 3 * decode["parts"]["compute"]["bound_ns"]


@pytest.mark.slow
def test_the_docs_have_what_is_best(answer):
    """docs/calibration.md, section 4: a sentence for each program."""
    page = " ".join((ROOT / "docs/calibration.md").read_text(encoding="utf-8").replace("\n> ", " ").split())
    sentences = [line for line in answer.lines if "least energy at" in line]
    assert len(sentences) == 4
    for sentence in sentences:
        assert sentence in page


@pytest.mark.slow
def test_the_docs_have_the_marginal_efficiencies(answer):
    """docs/calibration.md, section 5: a row for each program."""
    page = (ROOT / "docs/calibration.md").read_text(encoding="utf-8")
    titles = {"jax": "JAX", "torchxla": "TorchXLA"}
    for each in answer.document["marginal"]:
        cells = [
            f"{row['efficiency']:+.2f} ({row['low']:+.2f} to {row['high']:+.2f})" for row in each["parts"].values()
        ]
        assert f"| {titles[each['arm']]} {each['phase']} | {' | '.join(cells)} |" in page


def test_a_voltage_that_is_given_is_not_called_assumed():
    chip = replace(GENERATIONS["v5e"], calibrated_on="our pod", own=frozenset({"time.hop_s"}))
    voltage = Voltage(0.4, is_assumed=False, core_share=0.3)
    given = Subjects(programs=(), chip=chip, voltage=voltage, slice_name="v5e:2x4")
    assert given.voltage_words == "V/V0 = 1 - 0.4 (1 - f/f0); of static power 30% follow the core's voltage"
    assert given.basis == "Modelled for v5e:2x4 with the coefficients of v5e, calibrated on our pod, not measured"
    assert list_voltages(given) == [given.voltage]


def test_what_is_assumed_is_tried_at_every_corner():
    """γ 0 and 1, and of v5e 29, 6 and 70 % of static power on the core's supply."""
    assumed = Subjects(programs=(), chip=GENERATIONS["v5e"], voltage=Voltage(), slice_name="v5e:2x4")
    corners = {(each.gamma, each.core_share) for each in list_voltages(assumed)}
    assert corners == {(gamma, share) for gamma in (0.0, 1.0) for share in (0.06, 0.29, 0.7)}


@pytest.mark.slow
def test_the_figure_says_what_it_is_made_of(answer):
    words = " ".join(re.findall(r">([^<>]+)</text>", answer.figure))
    for part in ("not measured", "prefill: energy of a step, J", "decode: energy × delay", "JAX", "TorchXLA"):
        assert part in words


def test_a_range_of_frequencies_has_both_ends():
    assert parse_frequencies("0.5:1.1:0.2") == (0.5, 0.7, 0.9, 1.1)
    assert parse_frequencies("0.9:1.1:0.1") == (0.9, 1.0, 1.1)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("0.5-1", "'0.5-1' is no range; write A:B:STEP of the nominal, like 0.5:1.1:0.05"),
        ("1:0.5:0.1", "from 1 to 0.5; A is less than B"),
        ("0.01:1:0.1", "both are from 0.05 to 5"),
        ("0.5:1:0", "STEP is 0"),
        ("0.5:1:0.001", "501 points; 2 to 200 are modelled"),
        ("0.5:1:0.9", "1 points; 2 to 200"),
    ],
)
def test_a_wrong_range_is_one_line(words, line):
    with pytest.raises(TimingError) as caught:
        parse_frequencies(words)
    assert line in str(caught.value)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--figure", "a.svg"], "--figure belongs to --frequency"),
        (["--frequency", "0.5:1:0.5", "--figure", "a.pdf"], "'a.pdf'; it names a .svg or .png file"),
        (["--frequency", "fast"], "'fast' is no range"),
    ],
)
def test_a_wrong_request_is_one_line(words, line, capsys):
    with pytest.raises(SystemExit) as ended:
        main([str(EXAMPLE), *words])
    assert ended.value.code == 2
    assert line in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("0.5:1000:100", "from 0.5 to 1000; A is less than B, and both are from 0.05 to 5"),
        ("-0.5:1:0.1", "from -0.5 to 1; A is less than B, and both are from 0.05 to 5"),
        ("0.5:1.1:-0.1", "STEP is -0.1; it is above 0"),
        ("0.5:1.1:0", "STEP is 0; it is above 0"),
        ("0.5-1.1", "'0.5-1.1' is no range; write A:B:STEP"),
    ],
)
def test_a_range_that_cannot_be_meant_is_one_line_that_says_why(words, says):
    for form in (["--frequency", words], [f"--frequency={words}"]):
        check_refusal(run_here("energy", EXAMPLE, *form), says)


def test_a_range_of_efficiency_has_the_digits_of_its_value():
    part = Marginal(part="ici", efficiency=0.0091, range=Span(0.0078, 0.0102), bound_ns=1e6, dynamic_j=1.0)
    workload = Workload(lambda *_: 1.0, np.zeros(6), 8.0)
    subject = SpeedSubject(title="JAX", arm="jax", phase="decode", cell="tpu", workload=workload)
    given = Subjects(programs=(), chip=GENERATIONS["v5e"], voltage=Voltage(), slice_name="v5e:2x4")
    (row,) = [line for line in list_marginal_lines(given, [Margins(subject=subject, parts=(part,))]) if "ICI" in line]
    assert row.split()[1:5] == ["+0.009", "+0.008", "to", "+0.010"]
