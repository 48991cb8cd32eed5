"""Timelines made by hand for the report of `reports.py`: a prefill of tp4pp2, of which every time is known.

Each of 5 ticks runs 16 layers, each layer 700 µs of compute and two all-reduces of 300 µs that nothing hides; TorchXLA
also gathers q in 150 µs, 50 of them behind compute, and k and v in 25 µs each.  A tick ends with a shift of 200 µs
that starts 100 µs before its compute ends.
"""

from typing import Any

import numpy as np
import pandas as pd

from compare.render.time.timeline_view import ProgramTimeline
from compare.timeline.columns import EVENT_COLUMNS, STEP_COLUMNS
from compare.timeline.timeline import Timeline, add_overlap

LABEL = "modelled for v5e:2x4 (not measured)"
MEASURED = "measured on 8 virtual CPU devices (jax), not a TPU; embed 4096 → 256"

GATHER = "all-gather.11"
TICKS, LAYERS, STAGES = 5, 16, {0: (0, 1, 2, 3), 4: (4, 5, 6, 7)}

Event = tuple[Any, ...]

_ROWS: dict[str, tuple[str, str, str, float]] = {
    "all-reduce.2": ("layer.attention.out", "all-reduce", "tp", 16_777_216),
    "all-reduce.3": ("layer.mlp.down", "all-reduce", "tp", 16_777_216),
    "collective-permute.1": ("pipeline.shift", "collective-permute", "pp", 16_777_216),
    "all-gather.11": ("layer.attention.core", "all-gather", "tp", 16_777_216),
    "all-gather.12": ("layer.attention.core", "all-gather", "tp", 4_194_304),
    "all-gather.13": ("layer.attention.core", "all-gather", "tp", 4_194_304),
}


def compute(device: int, name: str, start: float, duration: float, *, role: str = "compute", of: str = "") -> Event:
    """An event of the main line; times in ns."""
    return (device, "XLA Ops", name, name, role, of, "", "", "", np.nan, start, duration, np.nan)


def communicate(device: int, name: str, start: float, duration: float, *, wait: float = np.nan) -> Event:
    """A communication."""
    scope, kind, axes, payload = _ROWS[name]
    return (device, "XLA Ops", name, name, "communication", name, scope, kind, axes, payload, start, duration, wait)


def make_timeline(
    events: list[Event], *, steps: list[tuple[int, int, float, float]], source: str = "modelled", label: str = LABEL
) -> Timeline:
    """Of rows of EVENT_COLUMNS and of STEP_COLUMNS."""
    given = pd.DataFrame(events, columns=list(EVENT_COLUMNS)).astype(EVENT_COLUMNS)
    marks = pd.DataFrame(steps, columns=list(STEP_COLUMNS)).astype(STEP_COLUMNS)
    devices = sorted({row[0] for row in events})
    stands = {device: STAGES.get(device, (device,)) for device in devices}
    return Timeline(source=source, label=label, events=add_overlap(given, marks), steps=marks, stands_for=stands)


def stage(device: int, *, gathers: bool, slower: float = 1.0) -> list[Event]:
    """One step of one stage; `slower` times as long."""
    us, events, now = 1000.0 * slower, list[Event](), 0.0
    for _ in range(TICKS):
        begun = now
        for _ in range(LAYERS):
            if gathers:
                events += [
                    compute(device, "all-gather-start.11", now, us, role="part", of=GATHER),
                    communicate(device, "all-gather.11", now, 150 * us),
                    compute(device, "fusion.7", now + us, 50 * us),
                    compute(device, "all-gather-done.11", now + 51 * us, 99 * us, role="part", of=GATHER),
                    communicate(device, "all-gather.12", now + 150 * us, 25 * us),
                    communicate(device, "all-gather.13", now + 175 * us, 25 * us),
                ]
                now += 200 * us
            left = 200 * us if gathers else 250 * us
            events.append(compute(device, "fusion.1", now, left))
            now += left
            events.append(communicate(device, "all-reduce.2", now, 300 * us, wait=40 * us))
            events.append(compute(device, "fusion.2", now + 300 * us, 450 * us))
            now += 750 * us
            events.append(communicate(device, "all-reduce.3", now, 300 * us, wait=20 * us))
            now += 300 * us
        events.append(compute(device, "while.3", begun, now - begun, role="container"))
        events.append(compute(device, "fusion.9", now, 100 * us))
        events.append(communicate(device, "collective-permute.1", now, 200 * us))
        now += 200 * us
    return events


def step_ns(*, gathers: bool, slower: float = 1.0) -> float:
    """By hand: 5 ticks of 16 layers of 1,300 µs (TorchXLA 150 µs more) and a shift."""
    layer = 1300 + (150 if gathers else 0)
    return 1000.0 * slower * TICKS * (LAYERS * layer + 200)


def make_shares() -> pd.DataFrame:
    """The verdicts of `reports.py`: four of five ticks are inherent, gathers are induced, of a shift 40 % is needed."""
    rows = [
        ("all-reduce.2", 0.8, 0.2, 0.0, "inherent"),
        ("all-reduce.3", 0.8, 0.2, 0.0, "inherent"),
        ("collective-permute.1", 0.4, 0.6, 0.0, "inflated"),
        *((f"all-gather.{number}", 0.0, 0.0, 1.0, "induced") for number in (11, 12, 13)),
    ]
    return pd.DataFrame(rows, columns=["collective", "inherent", "inflated", "induced", "verdict"])


def make_timed(
    arm: str,
    *,
    phase: str = "prefill",
    cell: str = "tpu",
    source: str = "modelled",
    label: str = LABEL,
    slower: float = 1.0,
) -> ProgramTimeline:
    """A whole step of both stages of one arm."""
    gathers = arm == "torchxla" and cell != "tpu+einsum"
    ends = step_ns(gathers=gathers, slower=slower)
    events = [event for device in STAGES for event in stage(device, gathers=gathers, slower=slower)]
    timed = make_timeline(events, steps=[(device, 0, 0.0, ends) for device in STAGES], source=source, label=label)
    return timed_program(timed, arm=arm, phase=phase, cell=cell)


def timed_program(timeline: Timeline, *, arm: str = "jax", phase: str = "decode", cell: str = "tpu") -> ProgramTimeline:
    """The timeline as that of a program; its verdicts are those of `make_shares`."""
    return ProgramTimeline(
        phase=phase,
        arm=arm,
        title={"jax": "JAX", "torchxla": "TorchXLA"}[arm],
        cell=cell,
        default=cell == "tpu",
        timeline=timeline,
        shares=make_shares(),
        platform="cpu" if timeline.source == "measured" else None,
    )
