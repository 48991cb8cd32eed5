"""Energy on the page, in a terminal, in figures and in the trace: of the example, and of reports changed by hand."""

import copy
import itertools
import json
import re
from dataclasses import replace

import pytest

from compare.render.energy.figures import list_drawings
from compare.render.energy.power import draw_phase
from compare.render.energy.section import breakdown_table, energy_section
from compare.render.energy.sentence import energy_sentence
from compare.render.picture import draw_all
from compare.render.terminal import console, print_sections
from compare.render.time.perfetto import write_trace
from compare.render.time.timing_section import ProgramTiming, timings_by_phase
from compare.render.units import span_text
from compare.report.model.codec import decode
from compare.report.model.energy import StepEnergy
from compare.report.model.report import Report
from compare.report.model.timing import StepTimes, Timing
from tests.compare.render.chrome_trace import read
from tests.compare.render.from_json import page
from tests.compare.render.timelines import make_timed
from tests.places import EXAMPLE, example_report

PHASES = ("prefill", "decode")


@pytest.fixture(scope="module")
def report():
    return Report.from_json(example_report())


def printed(report, capsys, *, details=True):
    print_sections([energy_section(report)], out=console(), details=details)
    return capsys.readouterr().out


def test_a_value_and_its_range_have_one_unit():
    assert span_text(544.1, 381, 715.2, unit="J") == "544 J (381–715)"
    assert span_text(0.1849, 0.1294, 0.2408, unit="J") == "185 mJ (129–241)"
    assert span_text(962, 674.5, 1258.5, unit="W") == "962 W (674–1258)"
    assert span_text(999.7, 700, 1300, unit="W") == "1.00 kW (0.70–1.30)"
    assert span_text(-0.3, -0.6, 0.2, unit="J") == "−300 mJ (−600–200)"
    assert span_text(0, 0, 0, unit="J") == "0 J"
    assert span_text(0, -2e-3, 1e-3, unit="J") == "0.00 mJ (−2.00–1.00)"


def test_the_sentence_is_of_the_default_programs_with_what_is_avoidable_and_its_range(report):
    words = energy_sentence(report)
    energy = report.phases["prefill"].arms["torchxla"].default.energy
    step = span_text(energy.step_j, energy.low_j, energy.high_j, unit="J")
    avoidable = span_text(energy.avoidable_j, *energy.avoidable_span_j, unit="J")
    assert words.startswith(
        f"Energy, modelled: a TorchXLA prefill step takes {step}, of which {avoidable} is avoidable communication; "
    )
    assert energy.avoidable_j == energy.by_verdict_j["inflated"] + energy.by_verdict_j["induced"]
    assert words.endswith("(JAX: 12.3 J of 187 J and 110 mJ of 13.8 J); ranges take the times as exact.")


def test_a_report_that_is_calibrated_says_on_what():
    changed = copy.deepcopy(example_report())
    changed["energy_model"]["calibrated_on"] = "our pod, June"
    assert energy_sentence(Report.from_json(changed)).startswith("Energy, modelled (calibrated on our pod, June): a ")
    assert "those of v5e, calibrated on our pod, June" in page(changed)


def without_energy():
    changed = copy.deepcopy(example_report())
    del changed["energy_model"]
    for phase in changed["phases"].values():
        del phase["energy_difference"]
        for arm in phase["arms"].values():
            for program in (arm, *arm["controls"].values()):
                del program["energy"]
    return changed


def test_a_report_of_an_earlier_version_has_no_section_and_no_sentence():
    earlier = Report.from_json(without_energy())
    assert energy_sentence(earlier) == ""
    assert energy_section(earlier).blocks == ()
    assert list_drawings(timings_by_phase(earlier)) == []
    assert 'id="energy"' not in page(without_energy())


def test_the_tables_fit_100_columns_and_say_what_they_are(report, capsys):
    text = printed(report, capsys)
    assert max(map(len, text.splitlines())) <= 100
    assert text.lstrip().startswith("Energy: modelled, not measured")
    for phase in PHASES:
        difference = report.phases[phase].energy_difference
        exact = f"{difference.low_ratio:.2f}–{difference.high_ratio:.2f}"
        with_times = f"{difference.low_ratio_with_times:.2f}–{difference.high_ratio_with_times:.2f}"
        ranges = f"({exact}; {with_times} if each step's time is 15% off)"
        assert f"{difference.ratio:.2f} × {ranges}" in " ".join(text.split())
    assert printed(report, capsys, details=False) == ""  # the sentence says it in short


def test_the_rows_of_a_breakdown_add_up_to_its_steps(report):
    for phase in PHASES:
        for programs in report.phases[phase].arms.values():
            energy, times = programs.default.energy, programs.default.timing.per_step
            assert sum(energy.time_by_component_ns.values()) == pytest.approx(times.step_ns, abs=0.01)
            assert sum(energy.by_component_j.values()) == pytest.approx(energy.step_j, rel=1e-12)


def test_the_time_that_arithmetic_bounds_is_not_called_compute(report, capsys):
    """JAX's decode step computes for 19.2 ms, 1.92 ms of which arithmetic bounds: two amounts, two words."""
    times = report.phases["decode"].arms["jax"].default
    split = times.energy.time_by_component_ns
    assert split["compute"] < 0.2 * times.timing.per_step.compute_ns
    assert split["compute"] + split["memory"] == pytest.approx(times.timing.per_step.compute_ns, abs=0.01)
    tables = [breakdown_table(phase, timings) for phase, timings in timings_by_phase(report).items()]
    for table in tables:
        assert [column.heading for column in table.columns][2:4] == ["arithmetic", "memory"]
    for picture in draw_all(list_drawings(timings_by_phase(report))):
        words = re.findall(r">([^<>]+)</text>", picture.svg.decode())
        assert "arithmetic" in words
        assert "compute" not in words
    assert "The time of compute is split here" in " ".join(printed(report, capsys).split())


def test_a_step_that_takes_less_says_so():
    changed = copy.deepcopy(example_report())
    difference = changed["phases"]["decode"]["energy_difference"]
    difference["left"], difference["right"] = difference["right"], difference["left"]
    for key in ("difference_j", "low_j", "high_j"):
        difference[key] = -difference[key]
    for parts in ("by_component_j", "by_verdict_j"):
        difference[parts] = {name: -joules for name, joules in difference[parts].items()}
    text = page(changed)
    assert (
        "a decode step of JAX tpu+gspmd takes 8.62\N{NO-BREAK SPACE}J (7.11–11.9) less than one of TorchXLA tpu" in text
    )


def test_the_page_has_both_figures_and_keeps_the_power_by_the_strip(report):
    shipped = (EXAMPLE / "report.html").read_text()
    time, energy = (
        re.search(rf'<section id="{name}">.*?</section>', shipped, re.DOTALL)[0] for name in ("time", "energy")
    )
    for phase in PHASES:
        assert f"{phase.capitalize()}: power over a step, modelled" in time
        assert f"figures/energy-{phase}-breakdown" in energy
    assert "<script" not in energy
    names = [picture.name for picture in draw_all(list_drawings(timings_by_phase(report)))]
    assert names == [f"energy-{phase}-breakdown" for phase in PHASES]


def test_the_curves_of_a_phase_have_one_scale_and_end_with_their_steps():
    """100 and 50 W in windows of 1 ms of 2, and 200 W in 4 ms: on 1,000 × 60 half as high, and half as wide."""
    made = example_report()["phases"]["prefill"]["arms"]["jax"]

    def timing(power, window, step):
        energy = decode(StepEnergy, made["energy"] | {"power_w": power, "window_ns": window, "mean_w": 75})
        times = decode(StepTimes, made["timing"]["per_step"] | {"step_ns": step})
        section = replace(decode(Timing, made["timing"]), per_step=times)
        return ProgramTiming(
            phase="prefill",
            arm="jax",
            title="JAX",
            cell="tpu",
            default=True,
            platform=None,
            section=section,
            rows=(),
            energy=energy,
        )

    drawn = draw_phase("prefill", [timing([100, 50], 1e6, 2e6), timing([200], 4e6, 4e6)])
    assert [curve.area for curve in drawn.curves] == ["M0 60V30.0H250.0V45.0H500.0V60Z", "M0 60V0.0H1000.0V60Z"]
    assert [curve.mean for curve in drawn.curves] == ["M0 37.5H500.0", "M0 37.5H1000.0"]
    assert "4.00 ms wide and 200 W high" in drawn.words
    assert drawn.words.startswith("Modelled for v5e:2x4, not measured: all chips together")
    assert draw_phase("prefill", [replace(timing([1], 1e6, 1e6), energy=None)]) is None


@pytest.mark.slow
def test_figures_say_that_they_are_modelled_and_are_the_same_again(report):
    first, second = (draw_all(list_drawings(timings_by_phase(report))) for _ in range(2))
    assert [picture.svg for picture in first] == [picture.svg for picture in second]
    for picture in first:
        assert picture.caption.startswith("Modelled, not measured")
        assert b"not measured" in picture.svg


def test_colours_of_neighbours_differ_in_grey():
    from matplotlib.colors import to_rgb

    from compare.render.energy.figures import _LOOK

    grey = {
        name: sum(w * c for w, c in zip((0.299, 0.587, 0.114), to_rgb(colour), strict=True))
        for name, (colour, _) in _LOOK.items()
    }
    for stack in (("compute", "memory", "network", "idle"), ("compute", "memory", "ici", "dcn", "static")):
        for before, after in itertools.pairwise(stack):
            assert abs(grey[before] - grey[after]) > 0.1, (before, after)


def test_the_trace_has_power_as_a_counter_that_ends_with_the_step(tmp_path):
    """Two windows and a half of the example's own energy: 100, 200 and 50 W."""
    made = dict(example_report()["phases"]["prefill"]["arms"]["jax"]["energy"])
    timed = make_timed("jax")
    end = float(timed.timeline.steps["duration_ns"].iloc[0])
    energy = decode(StepEnergy, made | {"power_w": [100, 200.5, 50], "window_ns": end / 2.5})
    path = tmp_path / "trace.json.gz"
    write_trace(path, timelines=[replace(timed, energy=energy), make_timed("torchxla")])
    counters = [event for event in read(path) if event["ph"] == "C" and event["name"] == "power, modelled"]
    assert [(event["pid"], event["args"]["W"]) for event in counters] == [(1, 100), (1, 200.5), (1, 50), (1, 0)]
    times = [event["ts"] for event in counters]
    assert times == pytest.approx([0, end / 2500, end / 1250, end / 1000], abs=0.001)


def test_every_joule_of_the_report_is_a_number(report):
    """NaN and infinity are no JSON."""
    text = json.dumps(report.to_json(), allow_nan=False)
    assert text.count('"step_j"') == 10


def test_a_step_of_one_window_has_no_peak_beside_its_mean():
    """A step of 0.4 ms: the largest of one window is the mean, which is no peak."""
    changed = copy.deepcopy(example_report())
    energy = changed["phases"]["decode"]["arms"]["jax"]["energy"]
    energy["power_w"], energy["window_ns"] = [energy["mean_w"]], 4e5
    energy["peak_w"] = energy["mean_w"]
    text = page(changed)
    assert text.count("one window: the mean") == 1
    assert "one window: no peak" in text
    assert "one window" not in page(example_report())
