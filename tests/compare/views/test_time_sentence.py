"""The sentence on time: reports made by hand, with numbers put in."""

from copy import deepcopy
from typing import Any

import pytest

from compare.views.time_sentence import time_sentence

Report = dict[str, Any]
LABEL = "modelled for v5e:2x4"


def timing(step_ns: float, needless: tuple[float | None, float | None]) -> dict[str, Any]:
    inflated, induced = needless
    return {
        "source": "modelled", "label": LABEL, "per_step": {"step_ns": step_ns},
        "by_verdict": {"inherent": {"exposed_ns": 5e6}, "inflated": {"exposed_ns": inflated},
                       "induced": {"exposed_ns": induced}},
    }  # fmt: skip


def made(**times: dict[str, Any]) -> Report:
    """One phase, prefill; of each arm its default program alone."""
    arms = {arm: {"cell": "tpu", "controls": {}, "profiles": {}, "timing": one} for arm, one in times.items()}
    return {"arms": {arm: {"title": arm.upper()} for arm in times}, "phases": {"prefill": {"arms": arms}}}


def test_the_arm_that_waits_longest_in_vain_comes_first_by_its_share_of_the_step():
    report = made(jax=timing(100e6, (2e6, 0)), torch=timing(400e6, (2e6, 70e6)))
    assert time_sentence(report) == (
        "Modelled for v5e:2x4, not measured: TORCH waits 72.0 ms of a 400 ms prefill step for communication that "
        "nobody needed (JAX: 2.00 ms of 100 ms)."
    )


def test_two_phases_are_told_in_one_sentence():
    report = made(jax=timing(100e6, (2e6, 0)), torch=timing(400e6, (2e6, 70e6)))
    report["phases"]["decode"] = deepcopy(
        made(jax=timing(20e6, (0, 0)), torch=timing(40e6, (0, 1e6)))["phases"]["prefill"]
    )
    assert "72.0 ms of a 400 ms prefill step and 1.00 ms of a 40.0 ms decode step" in time_sentence(report)
    assert "(JAX: 2.00 ms of 100 ms and 0 s of 20.0 ms)" in time_sentence(report)


def test_where_nobody_waits_in_vain_it_says_so():
    report = made(jax=timing(1e6, (0, 0)), torch=timing(1e6, (0, 0)))
    assert (
        time_sentence(report)
        == "Modelled for v5e:2x4, not measured: no step waits for communication that nobody needed."
    )


@pytest.mark.parametrize(
    "report", [made(), made(jax=timing(1e6, (None, 0)))], ids=["no times", "times that do not tell"]
)
def test_where_no_times_tell_it_there_is_no_sentence(report):
    assert time_sentence(report) == ""
