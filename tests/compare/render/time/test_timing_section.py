"""What a report's timing sections say, held against times that are known by hand."""

from typing import Any

import pytest

from compare.render.time.timing_section import ProgramTiming, by_group, labels, sentence, waits
from compare.report.model.codec import decode
from compare.report.model.timing import Timing
from tests.compare.render.from_json import failures, timings
from tests.compare.render.timelines import LABEL, MEASURED
from tests.compare.render.timings import add_times, make_timing

Report = dict[str, Any]

MS = 1_000_000


@pytest.fixture
def programs(report: Report) -> list[ProgramTiming]:
    return timings(add_times(report), "prefill")


def test_programs_stand_arm_by_arm_and_what_was_measured_apart(programs: list[ProgramTiming]) -> None:
    groups = by_group(programs)
    assert {name: [(item.arm, item.cell) for item in members] for name, members in groups.items()} == {
        "modelled": [("jax", "tpu"), ("jax", "tpu+gspmd"), ("torchxla", "tpu"), ("torchxla", "tpu+einsum")],
        "measured on CPU devices": [("jax", "cpu"), ("torchxla", "cpu")],
    }
    assert labels(groups["modelled"]) == {LABEL: ["JAX tpu", "JAX tpu+gspmd", "TorchXLA tpu", "TorchXLA tpu+einsum"]}
    assert list(labels(groups["measured on CPU devices"])) == [MEASURED, MEASURED.replace("jax", "torch_xla")]
    assert [item.default for item in programs] == [True, False, True, False, False, False]


def test_times_on_a_tpu_come_before_the_model_s(report: Report) -> None:
    add_times(report)
    for arm in report["phases"]["prefill"]["arms"].values():
        arm["profiles"]["cpu"]["executed"]["platform"] = "tpu"
    assert list(by_group(timings(report, "prefill"))) == ["measured", "modelled"]


def test_the_numbers_are_those_worked_out_by_hand(programs: list[ProgramTiming]) -> None:
    # TorchXLA: 5 × (16 × 700 + 100) µs of compute; all-reduces 5 × 16 × 600 µs, four fifths inherent; shifts, half of
    # 5 × 200 µs exposed, two fifths inherent; gathers 5 × 16 × 200 µs, 150 of each 200 exposed.
    modelled = programs[2]
    assert (modelled.times.step_ns, modelled.times.compute_ns, modelled.times.exposed_ns) == (
        117 * MS,
        56.5 * MS,
        60.5 * MS,
    )
    assert [modelled.exposed(verdict) for verdict in ("inherent", "inflated", "induced", "unknown")] == [
        # The report's own shares of the shift's bytes are 2/5 and 3/5.
        pytest.approx(38.6 * MS, abs=1),
        pytest.approx(9.9 * MS, abs=1),
        pytest.approx(12 * MS, abs=1),
        0,
    ]
    assert modelled.idle_ns == 0


def test_the_headline_says_what_waits_and_what_of_it_nobody_needed(programs: list[ProgramTiming]) -> None:
    assert sentence(programs[0]) == "a 105 ms step, 48.5 ms of it exposed communication, of which 9.90 ms is avoidable"
    assert sentence(programs[2]) == "a 117 ms step, 60.5 ms of it exposed communication, of which 21.9 ms is avoidable"


@pytest.mark.parametrize(
    ("times", "verdicts", "words"),
    [
        ({"step_ns": 5000, "communication_ns": 0, "exposed_ns": 0}, {}, "a 5.00 µs step, without communication"),
        (
            {"step_ns": 5000, "communication_ns": 90, "exposed_ns": 0},
            {},
            "a 5.00 µs step, without exposed communication",
        ),
        (
            {"step_ns": 5000, "communication_ns": 90, "exposed_ns": 80},
            {"inherent": 80, "inflated": 0, "induced": 0},
            "a 5.00 µs step, 80 ns of it exposed communication, of which nothing is avoidable",
        ),
        (
            {"step_ns": 5000, "communication_ns": 90, "exposed_ns": 80},
            {"inherent": None, "inflated": None},
            "a 5.00 µs step, 80 ns of it exposed communication, of which the avoidable part is unknown",
        ),
        (
            {"step_ns": 5000, "communication_ns": None, "exposed_ns": None},
            {},
            "a 5.00 µs step; how much of it is exposed communication is unknown",
        ),
    ],
)
def test_the_headline_has_words_for_every_case(
    times: dict[str, float], verdicts: dict[str, float | None], words: str
) -> None:
    section = decode(Timing, make_timing(label=LABEL, exposed=verdicts, **times))
    program = ProgramTiming(
        phase="decode", arm="jax", title="JAX", cell="tpu", default=True, platform=None, section=section, rows=()
    )
    assert sentence(program) == words


def test_waits_are_by_place_with_their_verdicts_causes_and_lines(programs: list[ProgramTiming]) -> None:
    waiting = waits(programs[2])
    assert [(wait.place, wait.total_ns / MS) for wait in waiting] == [
        ("all-reduce over tp in layer.attention.out", pytest.approx(24)),
        ("all-reduce over tp in layer.mlp.down", pytest.approx(24)),
        ("all-gather over tp in layer.attention.core", pytest.approx(12)),
        ("collective-permute over pp in pipeline.shift", pytest.approx(0.5)),
    ]
    gathers = waiting[2]
    assert (gathers.executions, gathers.avoidable_ns) == (240, pytest.approx(12 * MS))
    assert gathers.causes == ("activation-gather",)
    assert gathers.source_lines == ("torchxla_impl/decoder/layers.py:88",)
    assert waiting[0].exposed_ns == {
        "inherent": pytest.approx(19.2 * MS),
        "inflated": pytest.approx(4.8 * MS),
        "induced": 0,
        "unknown": 0,
    }


def test_a_wait_for_what_is_in_no_row_is_of_unknown_verdict(report: Report) -> None:
    add_times(report)
    section = report["phases"]["prefill"]["arms"]["jax"]["timing"]
    section["collectives"] = [section["collectives"][0] | {"collective": "", "exposed_ns": 7}]
    (wait,) = waits(timings(report, "prefill")[0])
    assert wait.exposed_ns["unknown"] == 7
    assert wait.avoidable_ns == 0


def test_a_program_that_was_not_timed_says_why(report: Report) -> None:
    add_times(report)
    arm = report["phases"]["prefill"]["arms"]["jax"]
    del arm["timing"]
    arm["timing_error"] = "no clock is known for v9"
    arm["profiles"]["cpu"] |= {"status": "crashed", "error": "signal 11"}
    other = report["phases"]["prefill"]["arms"]["torchxla"]["profiles"]["cpu"]
    del other["timing"]
    other["timing_error"] = "the file is cut"
    assert list(failures(report, "prefill")) == [
        "JAX tpu has no modelled times: no clock is known for v9",
        "JAX cpu was not measured: signal 11",
        "TorchXLA cpu was measured, and has no times: the file is cut",
    ]


def test_waits_for_local_copies_are_no_idle_time_and_are_said(programs: list[ProgramTiming]) -> None:
    """Of the 56.5 ms of compute 20 ms are waits: idle stays 0."""
    from dataclasses import replace

    section = programs[2].section
    times = replace(section.per_step, compute_ns=36.5 * MS, copy_wait_ns=20 * MS)
    waiting = replace(programs[2], section=replace(section, per_step=times))
    assert waiting.idle_ns == 0
    assert sentence(waiting) == (
        "a 117 ms step, 20.0 ms of it waiting for local copies, 60.5 ms of it exposed communication, of which "
        "21.9 ms is avoidable"
    )
