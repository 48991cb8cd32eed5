"""A modelled timeline, from columns of events: what describes an event is said once, as its label."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.hlo.collective import Collective
from compare.timeline.arrays import Floats, Ints
from compare.timeline.columns import EVENT_COLUMNS, STEP_COLUMNS, WORK_COLUMNS
from compare.timeline.timeline import COMMUNICATION, COMPUTE, CONTAINER, PART, Timeline, add_overlap

CORE_LINE, BESIDE_LINE, CPU_LINE = "XLA Ops", "Async XLA Ops", "CPU"
"""Operations of the TensorCore, asynchronous ones (both as in a TPU's own profile), and the CPU's, which no sum has."""


@dataclass(frozen=True, slots=True)
class Label:
    """The description of an event."""

    name: str
    role: str
    line: str = CORE_LINE
    collective: str = ""
    scope: str = ""
    kind: str = ""
    axes: str = ""
    payload_bytes: int | None = None

    @classmethod
    def of(cls, name: str, role: str, row: Collective, line: str = CORE_LINE) -> "Label":
        """Of what executes a collective."""
        return cls(name, role, line, row.name, row.scope, row.kind, row.axes, row.payload_bytes)


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Those of one device, and of all that it stands for."""

    label: Ints
    start_ns: Floats
    duration_ns: Floats
    wait_ns: Floats
    work: Floats
    """(events, 5): WORK_COLUMNS."""


def make_timeline(
    shown: Sequence[tuple[tuple[int, ...], Events]],
    labels: Sequence[Label],
    *,
    end_ns: float,
    name: str,
    notes: Sequence[str],
) -> Timeline:
    """shown: (devices that have these events, events).  Without WORK_COLUMNS where any work is unknown (NaN)."""
    devices = np.array([members[0] for members, _ in shown], np.int64)
    steps = pd.DataFrame({"device": devices, "step": 0, "start_ns": 0.0, "duration_ns": end_ns}).astype(STEP_COLUMNS)
    return Timeline(
        source="modelled",
        label=name,
        events=add_overlap(_frame(devices, [events for _, events in shown], labels), steps),
        steps=steps,
        stands_for={members[0]: members for members, _ in shown},
        notes=tuple(notes),
    )


def _frame(devices: Ints, parts: Sequence[Events], labels: Sequence[Label]) -> pd.DataFrame:
    label = np.concatenate([part.label for part in parts])
    known: dict[str, tuple[str, ...]] = {
        "line": (CORE_LINE, BESIDE_LINE),
        "role": (COMPUTE, COMMUNICATION, CONTAINER, PART),
    }
    data: dict[str, object] = {}
    for column in ("line", "name", "role", "collective", "scope", "kind", "axes"):
        words = [getattr(each, column) for each in labels]
        categories = {word: code for code, word in enumerate(dict.fromkeys([*known.get(column, ()), *words]))}
        codes = np.array([categories[word] for word in words], np.int64)
        data[column] = pd.Categorical.from_codes(codes[label], categories=pd.Index(list(categories), dtype=object))
    payload = [np.nan if each.payload_bytes is None else each.payload_bytes for each in labels]
    data |= {
        "device": np.repeat(devices.astype(np.int32), [part.label.size for part in parts]),
        "hlo_op": data["name"],
        "payload_bytes": np.array(payload, np.float64)[label],
        **{
            key: np.concatenate([getattr(part, key) for part in parts])
            for key in ("start_ns", "duration_ns", "wait_ns")
        },
    }
    work = np.concatenate([part.work for part in parts])
    columns = {} if np.isnan(work).any() else dict(zip(WORK_COLUMNS, work.T, strict=True))
    return pd.DataFrame({**{key: data[key] for key in EVENT_COLUMNS}, **columns})
