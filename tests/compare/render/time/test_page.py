"""The page's part about time: the headline, the strip's data and script, and what stands there without them."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from compare.render.time.timeline_strip import strip
from tests.compare.render.from_json import differences, page, stages, time_pictures
from tests.compare.render.report.test_page import HOSTILE
from tests.compare.render.reports import make_report
from tests.compare.render.timings import add_times, make_times

Report = dict[str, Any]


def make_page(*pictured: str) -> str:
    """Both phases of both arms, compiled and measured, with strips, and the figures of some phases."""
    report = add_times(make_report(phases=("prefill", "decode")))
    strips = [strip(program, stage_of=stages(report["mesh"])) for program in make_times(("prefill", "decode")).values()]
    drawn = report | {"phases": {phase: report["phases"][phase] for phase in pictured}}
    return page(report, time_pictures=time_pictures(drawn, strips=strips), strips=strips)


@pytest.fixture(scope="module")
def html() -> str:
    return make_page("prefill")


@pytest.fixture(scope="module")
def everything() -> str:
    return make_page("prefill", "decode")


def _text(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).replace("\N{NO-BREAK SPACE}", " ").split())


def test_the_part_begins_with_the_headline_of_each_arm_and_says_where_it_is_from(html: str) -> None:
    text = _text(html[html.index('id="time"') : html.index('id="strips"')])
    assert "Modelled for v5e:2x4 (not measured) JAX tpu: a 105 ms step, 48.5 ms of it exposed communication" in text
    assert "TorchXLA tpu: a 117 ms step, 60.5 ms of it exposed communication, of which 21.9 ms is avoidable." in text
    assert "Measured on 8 virtual CPU devices (jax), not a TPU; embed 4096 → 256 (JAX cpu)" in text
    assert "never the speed of a TPU" in text


@pytest.mark.slow
def test_what_is_neither_stands_in_the_table_of_all_times(report: Report) -> None:
    add_times(report)["phases"]["prefill"]["arms"]["torchxla"]["timing"]["per_step"]["step_ns"] += 3_000_000
    text = _text(page(report))
    table = text[text.index("All times of a step") :]
    assert "exposed induced exposed unknown neither waiting for others JAX tpu 105 ms 56.5 ms" in table
    assert "TorchXLA tpu 120 ms 56.5 ms 65.0 ms 4.50 ms 60.5 ms 38.6 ms 9.90 ms 12.0 ms 0 s 3.00 ms" in table


def test_where_it_waits_is_told_with_the_line_that_asked(html: str) -> None:
    text = _text(html[html.index("Exposed communication of prefill") :])
    assert "all-gather over tp layer.attention.core – 12.0 ms 240 × show 12.0 ms induced activation-gather " in text
    assert "torchxla_impl/decoder/layers.py:88" in text[: text.index("Exposed communication of decode")]


def test_the_timelines_are_held_against_each_other(html: str) -> None:
    text = _text(html[html.index("Timelines compared") : html.index("More figures of time")])
    # TorchXLA gathers for 16 ms, 4 of them behind compute.
    assert (
        "Prefill, modelled for v5e:2x4 (not measured): TorchXLA tpu communicates 16.0 ms a step longer than "
        "JAX tpu+gspmd, and waits 12.0 ms longer"
    ) in text
    assert "layer.attention.core over tp 0 s 0 s 16.0 ms 12.0 ms 16.0 ms 12.0 ms" in text
    assert "12.0 ms 8.00 ms TorchXLA all-gather.11 all-gather over tp in layer.attention.core show 80 × " in text
    assert "Decode, measured on CPU devices: TorchXLA cpu communicates" in text
    assert (
        "and waits 4.80 ms longer Measured on 8 virtual CPU devices (jax), not a TPU; embed 4096 → 256 Measured" in text
    )
    assert "TorchXLA cpu: 490 of 810 communications do not show how long they wait" in text
    assert "right:" not in text


@pytest.mark.parametrize(
    ("longer", "exposed", "words"),
    [
        (0, 0, "JAX tpu and TorchXLA tpu communicate and wait equally long"),
        (-3e6, 1e6, "JAX tpu communicates 3.00 ms a step longer than TorchXLA tpu, and waits 1.00 ms less"),
        (3e6, 0, "TorchXLA tpu communicates 3.00 ms a step longer than JAX tpu, and waits equally long"),
        (None, None, "JAX tpu against TorchXLA tpu: times are not known by device"),
    ],
)
def test_what_differs_is_told_from_the_longer_side(report: Report, longer: float, exposed: float, words: str) -> None:
    sides = ("left", "right")
    amounts = {f"{side}_{what}_ns": None for side in sides for what in ("communication", "exposed")}
    report["phases"]["prefill"]["time_differences"] = {
        "modelled": {
            "left": {"arm": "jax", "cell": "tpu"},
            "right": {"arm": "torchxla", "cell": "tpu"},
            "labels": {},
            "total": {**amounts, "difference_communication_ns": longer, "difference_exposed_ns": exposed},
            "by_scope": [],
            "excess": [],
            "stretches": [],
            "num_stretches": 0,
            "notes": [],
        }
    }
    assert differences(report, "prefill")[0].sentence == words


def test_the_only_script_is_the_one_that_the_policy_names(html: str) -> None:
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", html, flags=re.S)
    assert [about for about, _ in scripts] == [' type="application/json" id="strip-data"', ""]
    known = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{known}'" in html
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", html)
    assert not re.search(r"\son\w+\s*=", re.sub(r"<script.*?</script>", "", html, flags=re.S))


def test_the_strips_data_cannot_end_the_element_that_it_stands_in() -> None:
    report = add_times(make_report())
    hostile_strip = strip(make_times()["jax", "prefill", "tpu"])
    first, *others = hostile_strip.collectives
    hostile_strip = replace(hostile_strip, collectives=(replace(first, scope=HOSTILE + "</script><!--"), *others))
    html = page(report, strips=[hostile_strip])
    (data,) = re.findall(r'id="strip-data">(.*?)</script>', html, flags=re.S)
    assert json.loads(data)["prefill"][0]["collectives"][0][3] == HOSTILE + "</script><!--"
    assert html.count("<script") == 2
    assert "alert(1)</script>" not in html


@pytest.mark.slow
def test_without_scripts_there_is_a_picture_of_the_step(everything: str) -> None:
    (still,) = re.findall(r"<noscript>(.*?)</noscript>", everything, flags=re.S)
    assert still.count("<img") == 2
    assert "Modelled, prefill: one step" in still


@pytest.mark.slow
def test_other_figures_are_folded_and_bear_the_names_of_their_files(everything: str) -> None:
    folded = everything[everything.index("More figures of time") :]
    for name in ("time-prefill-exposed", "time-decode-network", "time-prefill-intervals", "traffic-decode-routed"):
        assert f"figures/{name}" in folded


def test_a_report_without_times_says_so_in_one_line_and_has_no_script(report: Report) -> None:
    html = page(report)
    assert "<script" not in html
    assert "script-src" not in html
    part = _text(html[html.index('<section id="time">') : html.index("</section>", html.index('<section id="time">'))])
    assert part == "Time No times: none of these programs was modelled or measured."
    assert "nothing here is a time on one" in html


def test_a_program_that_could_not_be_timed_is_named(report: Report) -> None:
    report["phases"]["prefill"]["arms"]["jax"]["timing_error"] = "no clock is known for <v9>"
    assert "JAX tpu has no modelled times: no clock is known for &lt;v9&gt;" in page(report)


def test_ids_are_unique_and_headings_do_not_skip(html: str) -> None:
    ids = re.findall(r' id="([^"]*)"', html)
    assert len(ids) == len(set(ids))
    levels = [int(level) for level in re.findall(r"<h(\d)", html)]
    assert all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.slow
def test_a_page_with_everything_stays_small(everything: str) -> None:
    (data,) = re.findall(r'id="strip-data">(.*?)</script>', everything, flags=re.S)
    assert len(data) < 250_000
    assert len(everything) < 1_500_000
