"""The sentence on time: reports made by hand, with numbers put in."""

from copy import deepcopy
from typing import Any

import pytest

from tests.compare.render.from_json import time_sentence
from tests.compare.render.reports import make_report
from tests.compare.render.timings import make_timing

Report = dict[str, Any]
LABEL = "modelled for v5e:2x4"


def timing(step_ns: float, needless: tuple[float | None, float | None]) -> dict[str, Any]:
    """5 ms of needed waiting, that of nobody's need, and no idle time: the rest is compute."""
    inflated, induced = needless
    exposed = 5e6 + (inflated or 0) + (induced or 0)
    return make_timing(
        label=LABEL,
        exposed={"inherent": 5e6, "inflated": inflated, "induced": induced},
        step_ns=step_ns,
        exposed_ns=exposed,
        compute_ns=step_ns - exposed,
    )


def report_with(**times: dict[str, Any]) -> Report:
    """One phase, prefill; of each arm its default program alone."""
    report = make_report()
    arm, program = report["arms"]["jax"], report["phases"]["prefill"]["arms"]["jax"]
    report["arms"] = {name: {**arm, "title": name.upper()} for name in times}
    report["phases"]["prefill"]["arms"] = {
        name: {**program, "controls": {}, "profiles": {}, "timing": timing} for name, timing in times.items()
    }
    return report


def test_the_arm_that_waits_longest_in_vain_comes_first_and_why_its_step_is_longer():
    # 400 − 100 ms: 72 − 2 ms of waiting, and 323 − 93 ms of compute.
    report = report_with(jax=timing(100e6, (2e6, 0)), torch=timing(400e6, (2e6, 70e6)))
    assert time_sentence(report) == (
        "Modelled for v5e:2x4, not measured: TORCH spends 72.0 ms of a 400 ms prefill step in avoidable exposed "
        "communication (JAX: 2.00 ms of 100 ms). TORCH's prefill step is 300 ms longer than JAX's (230 ms more "
        "compute, 70.0 ms more exposed communication)."
    )


def test_a_small_share_of_a_long_step_is_still_the_longer_wait():
    # 3 % of the one step and 2.5 % of the other.
    report = report_with(jax=timing(3.4e9, (102e6, 0)), torch=timing(14.4e9, (109e6, 251e6)))
    assert "TORCH spends 360 ms of a 14.4 s prefill step in avoidable exposed communication (JAX" in (
        time_sentence(report)
    )


def test_a_step_that_waits_longer_may_be_the_shorter_one():
    # 100 − 110 ms: 1 ms more of waiting, 11 ms less of compute.
    report = report_with(jax=timing(110e6, (2e6, 0)), torch=timing(100e6, (3e6, 0)))
    words = "TORCH's prefill step is 10.0 ms shorter than JAX's (11.0 ms less compute, 1.00 ms more exposed"
    assert words in time_sentence(report)


def test_steps_that_differ_by_a_hundredth_are_alike():
    report = report_with(jax=timing(100e6, (2e6, 0)), torch=timing(100.9e6, (2e6, 0)))
    assert time_sentence(report).endswith("(JAX: 2.00 ms of 100 ms).")


def test_two_phases_are_told_in_one_sentence():
    report = report_with(jax=timing(100e6, (2e6, 0)), torch=timing(400e6, (2e6, 70e6)))
    report["phases"]["decode"] = deepcopy(
        report_with(jax=timing(20e6, (0, 0)), torch=timing(40e6, (0, 1e6)))["phases"]["prefill"]
    )
    assert "72.0 ms of a 400 ms prefill step and 1.00 ms of a 40.0 ms decode step" in time_sentence(report)
    assert "(JAX: 2.00 ms of 100 ms and 0 s of 20.0 ms)" in time_sentence(report)
    assert "exposed communication), its decode step 20.0 ms longer (19.0 ms more compute, 1.00 ms more" in (
        time_sentence(report)
    )


def test_where_nobody_waits_in_vain_it_says_so():
    report = report_with(jax=timing(1e6, (0, 0)), torch=timing(1e6, (0, 0)))
    assert time_sentence(report) == "Modelled for v5e:2x4, not measured: no step has avoidable exposed communication."


def test_where_nobody_waits_in_vain_a_step_can_still_be_longer():
    report = report_with(jax=timing(10e6, (0, 0)), torch=timing(18e6, (0, 0)))
    assert time_sentence(report).endswith(
        "exposed communication. TORCH's prefill step is 8.00 ms longer than JAX's (8.00 ms more compute)."
    )


def test_one_arm_alone_is_held_against_nothing():
    assert time_sentence(report_with(jax=timing(10e6, (2e6, 0)))) == (
        "Modelled for v5e:2x4, not measured: JAX spends 2.00 ms of a 10.0 ms prefill step in avoidable exposed "
        "communication."
    )


@pytest.mark.parametrize(
    "report", [report_with(), report_with(jax=timing(1e6, (None, 0)))], ids=["no times", "times that do not tell"]
)
def test_where_no_times_tell_it_there_is_no_sentence(report):
    assert time_sentence(report) == ""
