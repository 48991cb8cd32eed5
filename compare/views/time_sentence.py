"""The finding in time, as one sentence: how long each arm's step waits for communication that nobody needed."""

from collections.abc import Mapping
from typing import Any

from compare.views.timings import Timing, labels, timings
from compare.views.units import time_text

Report = Mapping[str, Any]


def time_sentence(report: Report) -> str:
    """Of the default programs, the arm that waits longest in vain first; empty where none has times that tell it."""
    found = [one for phase in report["phases"] for one in timings(report, phase) if one.default]
    told = [one for one in found if one.needless_ns is not None]
    if not told:
        return ""
    arms = dict.fromkeys(one.arm for one in told)
    first, *others = sorted(arms, key=lambda arm: -max(_share(one) for one in told if one.arm == arm))
    label = " and ".join(labels(told))
    label = f"{label[0].upper()}{label[1:]}"
    if not any(one.needless_ns for one in told):
        return f"{label}: no step waits for communication that nobody needed."
    own = [one for one in told if one.arm == first]
    words = " and ".join(f"{_part(one)} {one.phase} step" for one in own)
    sentence = f"{label}: {own[0].title} waits {words} for communication that nobody needed"
    rest = "; ".join(_short([one for one in told if one.arm == arm]) for arm in others)
    return f"{sentence} ({rest})." if rest else f"{sentence}."


def _share(one: Timing) -> float:
    return (one.needless_ns or 0) / (one.time("step_ns") or 1)


def _part(one: Timing) -> str:
    """`72.0 ms of a 488 ms`."""
    return f"{time_text(one.needless_ns)} of a {time_text(one.time('step_ns'))}"


def _short(own: list[Timing]) -> str:
    """`JAX: 23.6 ms of 267 ms and 212 µs of 24.9 ms`."""
    parts = [f"{time_text(one.needless_ns)} of {time_text(one.time('step_ns'))}" for one in own]
    return f"{own[0].title}: {' and '.join(parts)}"
