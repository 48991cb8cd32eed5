"""Where each device's steps begin and end: as the devices mark them, or as the next best says."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.timing.arrays import Ints
from compare.timing.timeline import STEP_COLUMNS, UNKNOWN
from compare.timing.xplane.device_events import DeviceEvents
from compare.timing.xplane.xspace import Plane, Space

_MOST = 0.5
"""Marks that hold less of the operations than this belong to something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMarks:
    frame: pd.DataFrame
    """Columns of STEPS."""
    notes: tuple[str, ...] = ()


def read_annotations(space: Space) -> pd.DataFrame:
    """What the program marked as a step on this host: columns word, step, start_ns, duration_ns."""
    found = [pd.DataFrame({"word": [], "step": [], "start_ns": [], "duration_ns": []})]
    for plane in space.planes:
        for line in plane.lines if _marks_steps(plane) else ():
            step = line.numbers("step_num")
            steps_by_device = step >= 0
            if steps_by_device.any():
                rows = pd.DataFrame(
                    {
                        "word": np.asarray(line.names[steps_by_device]).astype(object),
                        "step": step[steps_by_device],
                        "start_ns": line.start_ns(space.zero_ns)[steps_by_device],
                        "duration_ns": line.duration_ns[steps_by_device],
                    }
                )
                found.append(rows)
    return pd.concat(found[1:] or found, ignore_index=True)


def _marks_steps(plane: Plane) -> bool:
    return not plane.name.startswith("/device:") and "step_num" in plane.stat_names.values()


def find_steps(raw: DeviceEvents, annotated: pd.DataFrame) -> StepMarks:
    """The steps of one host's devices.  annotated: as `read_annotations` finds them."""
    devices = np.unique(raw.events["device"].to_numpy())
    if raw.steps is not None and len(raw.steps):
        return _for_all(raw.steps, devices)
    steps_by_device = _annotated(annotated, devices)
    if steps_by_device is not None and _share_inside(steps_by_device.frame, raw.events) >= _MOST:
        return steps_by_device
    executed = _executed(raw)
    if executed is not None:
        return executed
    starts = raw.events["start_ns"]
    ends = starts + raw.events["duration_ns"]
    return StepMarks(
        frame=_frame(devices, [0], [starts.min()], [ends.max() - starts.min()]),
        notes=("nothing marks steps: all that was recorded is taken for one, idle time and all",),
    )


def _for_all(table: pd.DataFrame, devices: Ints) -> StepMarks:
    """The devices' own marks; of a device without any, from the first that begins to the last that ends."""
    without = np.setdiff1d(devices, table["device"])
    if not without.size:
        return StepMarks(frame=table.astype(STEP_COLUMNS))
    every = (
        table.assign(end=table["start_ns"] + table["duration_ns"])
        .groupby("step")
        .agg({"start_ns": "min", "end": "max"})
    )
    rest = _frame(without, every.index, every["start_ns"], every["end"] - every["start_ns"])
    named = ", ".join(map(str, without))
    return StepMarks(
        frame=pd.concat([table, rest], ignore_index=True).astype(STEP_COLUMNS),
        notes=(f"devices {named} mark no steps of their own: those of the others are taken",),
    )


def _annotated(annotated: pd.DataFrame, devices: Ints) -> StepMarks | None:
    """What the host marked, for all of its devices.  One that is marked on several threads is one."""
    if not len(annotated):
        return None
    counts = annotated.groupby("word").agg(steps=("step", "nunique"), duration=("duration_ns", "sum"))
    word = counts.sort_values(["steps", "duration"]).index[-1]
    own = annotated[annotated["word"] == word]
    ends = own.assign(end=own["start_ns"] + own["duration_ns"]).groupby("step").agg({"start_ns": "min", "end": "max"})
    others = sorted(set(counts.index) - {word})
    return StepMarks(
        frame=_frame(devices, ends.index, ends["start_ns"], ends["end"] - ends["start_ns"]),
        notes=(f"steps are those marked {word!r}, not {', '.join(map(repr, others))}",) if others else (),
    )


def _executed(raw: DeviceEvents) -> StepMarks | None:
    """Every execution of the program that takes the most time."""
    runs = raw.executions if raw.executions is not None and len(raw.executions) else _spans(raw.events)
    if not len(runs):
        return None
    busiest = runs.groupby("module", observed=True)["duration_ns"].sum().idxmax()
    own = runs[runs["module"] == busiest].sort_values("start_ns")
    frame = own.assign(step=own.groupby("device").cumcount())[list(STEP_COLUMNS)].astype(STEP_COLUMNS)
    return StepMarks(frame=frame, notes=(f"nothing marks steps: each execution of {busiest!r} is taken for one",))


def _spans(events: pd.DataFrame) -> pd.DataFrame:
    """Executions, from the first operation that begins to the last that ends."""
    told = events[(events["run"] != -1) & (events["module"] != "")]
    known = told[told["device"] != UNKNOWN]
    # Of devices that are not known a run may be a part of one: they count only where no device is.
    told = known if len(known) else told
    ends = told.assign(end=told["start_ns"] + told["duration_ns"])
    found = ends.groupby(["device", "module", "run"], observed=True).agg({"start_ns": "min", "end": "max"})
    return found.assign(duration_ns=found["end"] - found["start_ns"]).reset_index()


def _share_inside(frame: pd.DataFrame, events: pd.DataFrame) -> float:
    """How many of the operations on main lines begin inside the steps of their device."""
    main = events[events["main"].to_numpy()]
    inside = 0
    for device, rows in main.groupby("device"):
        own = frame[frame["device"] == device].sort_values("start_ns")
        begins = own["start_ns"].to_numpy()
        at = np.searchsorted(begins, rows["start_ns"].to_numpy(), side="right") - 1
        ends = np.append(begins + own["duration_ns"].to_numpy(), -np.inf)
        inside += int((rows["start_ns"].to_numpy() < ends[at]).sum())
    return inside / len(main) if len(main) else 1.0


def _frame(devices: Ints, step: Iterable[int], start_ns: Iterable[float], duration_ns: Iterable[float]) -> pd.DataFrame:
    """The same steps for all of these devices."""
    one = pd.DataFrame({"step": list(step), "start_ns": list(start_ns), "duration_ns": list(duration_ns)})
    return pd.concat([one.assign(device=device) for device in devices], ignore_index=True)[list(STEP_COLUMNS)].astype(
        STEP_COLUMNS
    )
