"""Figures of time: each says where its times are from; the same bytes from the same report."""

from typing import Any

import pytest

from compare.render.picture import Drawing, Picture
from compare.render.time.timeline_strip import strip
from tests.compare.render.from_json import stages, time_drawings, time_pictures
from tests.compare.render.reports import make_report
from tests.compare.render.timelines import LABEL, MEASURED
from tests.compare.render.timings import add_times, make_times

pytestmark = pytest.mark.slow

Report = dict[str, Any]

NAMES = [
    "time-prefill-exposed",
    "time-prefill-strip",
    "time-prefill-pipeline",
    "time-prefill-network",
    "time-prefill-intervals",
    "traffic-prefill-routed",
]


def _drawings(report: Report) -> dict[str, Drawing]:
    strips = [strip(item, stage_of=stages(report["mesh"])) for item in make_times().values()]
    return dict(zip(NAMES, time_drawings(report, strips=strips), strict=True))


def _drawn(report: Report) -> dict[str, Picture]:
    drawn = {name: draw() for name, draw in _drawings(report).items()}
    assert [picture.name for picture in drawn.values()] == NAMES
    return drawn


@pytest.fixture(scope="module")
def drawn() -> dict[str, Picture]:
    return _drawn(add_times(make_report()))


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_says_where_its_times_are_from(drawn: dict[str, Picture], name: str) -> None:
    assert LABEL in drawn[name].svg.decode()
    assert drawn[name].caption.startswith("Modelled")
    assert drawn[name].png.startswith(b"\x89PNG")
    assert len(drawn[name].svg) < 150_000


def test_exposed_time_is_told_of_every_program_and_measured_ones_stand_apart(drawn: dict[str, Picture]) -> None:
    svg = drawn["time-prefill-exposed"].svg.decode()
    for words in (
        "60.5 ms of 117 ms exposed",
        "605 ms of 1.17 s exposed",
        "exposed: induced",
        "measured on CPU devices",
        MEASURED,
    ):
        assert words in svg
    assert "exposed: unknown" not in svg
    assert drawn["time-prefill-exposed"].caption.startswith("Modelled and measured on CPU devices, prefill: ")


def test_the_pipeline_shows_each_microbatch_and_the_bubble_beside_gpipe_s(drawn: dict[str, Picture]) -> None:
    assert "JAX  tpu: 20 % bubble; (p−1)/(m+p−1) is 20 %" in drawn["time-prefill-pipeline"].svg.decode()


def test_intervals_are_told_for_each_pair_of_axes_with_their_numbers(drawn: dict[str, Picture]) -> None:
    svg = drawn["time-prefill-intervals"].svg.decode()
    for words in ("tp → tp", "tp → pp", "pp → tp", "pp → pp", "median", "P95", "IQR", "1,272"):
        assert words in svg


def test_the_network_s_duty_cycle_is_that_of_its_communication(drawn: dict[str, Picture]) -> None:
    # JAX: 49 ms of communication in a step of 105 ms.
    assert "JAX  tpu, all 47 %" in drawn["time-prefill-network"].svg.decode()


def test_a_duty_cycle_of_less_than_a_hundredth_is_told_from_none() -> None:
    report = add_times(make_report())
    networks = [arm["timing"]["network"] for arm in report["phases"]["prefill"]["arms"].values()]
    for network, share in zip(networks, (0.0047, 0), strict=True):
        network["pp"]["duty_cycle"] = share
    svg = _drawings(report)["time-prefill-network"]().svg.decode()
    assert "JAX  tpu, pp 0.5 %" in svg
    assert "TorchXLA  tpu, pp 0 %" in svg


def test_a_step_says_what_is_pale(drawn: dict[str, Picture]) -> None:
    assert "pale: hidden" in drawn["time-prefill-strip"].svg.decode()


def test_the_same_report_gives_the_same_bytes(drawn: dict[str, Picture]) -> None:
    again = _drawn(add_times(make_report()))
    assert [(picture.png, picture.svg) for picture in again.values()] == [
        (picture.png, picture.svg) for picture in drawn.values()
    ]


def test_what_a_program_does_not_have_is_not_drawn(report: Report) -> None:
    add_times(report)
    for arm in report["phases"]["prefill"]["arms"].values():
        arm["timing"] |= {"pipeline": None, "intervals": [], "volume": {}, "matrix": None}
    assert [item.name for item in time_pictures(report, strips=[])] == ["time-prefill-exposed"]


def test_a_report_without_times_has_no_figures_of_them(report: Report) -> None:
    assert time_pictures(report, strips=[]) == []


def test_a_step_without_communication_is_drawn(report: Report) -> None:
    add_times(report)
    item = report["phases"]["prefill"]["arms"]["jax"]["timing"]
    item["per_step"] |= {"communication_ns": 0, "exposed_ns": 0, "hidden_ns": 0, "overlap": None}
    item["by_verdict"] = {name: dict.fromkeys(times, 0) for name, times in item["by_verdict"].items()}
    assert "0 s of 105 ms exposed" in _drawings(report)["time-prefill-exposed"]().svg.decode()
