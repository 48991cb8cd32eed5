"""The timeline: what each device did when, in one form for profiles and for the model."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timeline.arrays import Times
from compare.timeline.intervals import Union, exposed_shares
from compare.timeline.series import Series

COMPUTE, COMMUNICATION, COPY, CONTAINER, PART = "compute", "communication", "copy", "container", "part"
"""Roles of an event.  `copy`: the device waits for a local copy (its done on the main line), or starts one.
`container`: a loop, call or branch around others.  `part`: a part of a communication that has an event of its own (the
start and the done of an asynchronous one, its copy on another core).  Only the first three are ever summed.  A modelled
timeline counts waits for local copies as compute (docs/model.md), and has none of role `copy`."""

OCCUPIED = (COMPUTE, COPY)
"""Roles of what a device does on its main line, communication aside: what runs meanwhile is hidden."""

UNKNOWN = -1
"""The device of events whose device is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Events and steps of one program on its devices."""

    source: str
    """`measured` or `modelled`."""
    label: str
    """Its description in figures: where it was measured, or for which TPU it was modelled."""
    events: pd.DataFrame
    """EVENT_COLUMNS and DERIVED_COLUMNS, by device and start."""
    steps: pd.DataFrame
    """STEP_COLUMNS: when each device began and ended each step."""
    stands_for: Mapping[int, tuple[int, ...]]
    """Shown device -> the devices that it represents, itself included: the model shows identical devices once."""
    asides: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Events beside a device's main line that are no communication, like local copies; in no sum.  EVENT_COLUMNS and
    DETAIL_COLUMNS, or empty."""
    executions: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Executions of programs: device, module, run, start_ns, duration_ns; empty where none is known."""
    step_program: str = ""
    """The program whose executions are taken for the steps; "" where steps are marked."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """What one device can do, as the profile says: `flops_per_s`, `memory_bytes_per_s`."""
    unjoined_events: int = 0
    """Communications that were not joined to an instruction."""
    meters: tuple[Series, ...] = ()
    """Measured power, temperature and throttling, where somebody recorded them."""
    zero_unix_ns: int | None = None
    """The timeline's zero as nanoseconds since 1970; `None` unknown."""
    notes: tuple[str, ...] = field(default=())
    """What was missing, assumed or left out, one line each."""

    @property
    def num_devices(self) -> int:
        return sum(map(len, self.stands_for.values()))

    @property
    def num_steps(self) -> int:
        return int(self.steps["step"].nunique())


def add_overlap(given: pd.DataFrame, steps: pd.DataFrame) -> pd.DataFrame:
    """Adds DERIVED_COLUMNS to events.  `given`: EVENT_COLUMNS; `steps`: STEP_COLUMNS."""
    order = np.lexsort((-given["duration_ns"].to_numpy(), given["start_ns"].to_numpy(), given["device"].to_numpy()))
    is_sorted = bool((order == np.arange(len(order))).all())  # part of a timeline is
    events = (given if is_sorted else given.take(order)).reset_index(drop=True)
    starts, ends = _spans(events)
    derived = {name: np.zeros(len(events)) for name in ("hidden_ns", "exposed_ns", "alone_ns")}
    step = np.full(len(events), -1, dtype=np.int32)
    devices = events["device"].to_numpy()
    comms, computes = has_role(events, (COMMUNICATION,)), has_role(events, OCCUPIED)
    marks = steps_by_device(steps)
    edges = np.flatnonzero(np.diff(devices)) + 1
    for rows in np.split(np.arange(len(events)), edges) if len(events) else []:
        device = int(devices[rows[0]])
        busy = Union.of(starts[rows][computes[rows]], ends[rows][computes[rows]])
        comm_rows = rows[comms[rows]]
        derived["hidden_ns"][comm_rows] = busy.inside(starts[comm_rows], ends[comm_rows])
        derived["exposed_ns"][comm_rows] = np.maximum(
            ends[comm_rows] - starts[comm_rows] - derived["hidden_ns"][comm_rows], 0
        )
        derived["alone_ns"][comm_rows] = exposed_shares(starts[comm_rows], ends[comm_rows], busy)
        own_steps = marks.get(device, marks.get(UNKNOWN))
        if own_steps is not None:
            step[rows] = _steps_of(starts[rows], own_steps)
    return events.assign(step=step, **derived)


@contextmanager
def plain_strings() -> Iterator[None]:
    """While it lasts, pandas makes strings Python's own: Arrow's are a tenth of a small profile's time."""
    with pd.option_context("mode.string_storage", "python"):
        yield


def has_role(events: pd.DataFrame, roles: Sequence[str]) -> NDArray[np.bool_]:
    """Which events have one of the roles.  By code: pandas' own `isin` looks each word up in an index first."""
    role = events["role"].array
    chosen = np.array([*(word in roles for word in role.categories), False])
    return np.take(chosen, np.asarray(role.codes))


def steps_by_device(steps: pd.DataFrame) -> dict[int, pd.DataFrame]:
    """The steps of each device, in order; those of UNKNOWN apply to every device without its own."""
    ordered = steps.sort_values("start_ns", kind="stable")
    devices = ordered["device"].to_numpy()
    return {device: ordered[devices == device] for device in np.unique(devices).tolist()}


def _spans(events: pd.DataFrame) -> tuple[Times, Times]:
    starts = events["start_ns"].to_numpy(np.float64)
    return starts, starts + events["duration_ns"].to_numpy(np.float64)


def _steps_of(starts: Times, marks: pd.DataFrame) -> NDArray[np.int32]:
    """The number of the step that contains each time; -1 for none."""
    begins = marks["start_ns"].to_numpy(np.float64)
    ends = begins + marks["duration_ns"].to_numpy(np.float64)
    index = np.searchsorted(begins, starts, side="right") - 1
    inside = (index >= 0) & (starts < ends[np.maximum(index, 0)])
    return np.where(inside, marks["step"].to_numpy(np.int32)[np.maximum(index, 0)], -1).astype(np.int32)
