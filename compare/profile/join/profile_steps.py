"""Where each device's steps begin and end: from the devices' marks, the host's annotations, or program executions."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.profile.xplane.device_events import DeviceEvents
from compare.profile.xplane.xspace import Plane, Space
from compare.timeline.arrays import Ints
from compare.timeline.columns import STEP_COLUMNS
from compare.timeline.programs import EXECUTED
from compare.timeline.timeline import UNKNOWN

_MOST = 0.5
"""Annotations that contain less than this fraction of the operations are not steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMarks:
    frame: pd.DataFrame
    """Columns of STEP_COLUMNS."""
    program: str = ""
    """The program whose executions they are; "" where they are marked."""
    notes: tuple[str, ...] = ()


def read_annotations(space: Space) -> pd.DataFrame:
    """The step annotations of this host: columns word, step, start_ns, duration_ns."""
    frames = [pd.DataFrame({"word": [], "step": [], "start_ns": [], "duration_ns": []})]
    for plane in space.planes:
        for line in plane.lines if _marks_steps(plane) else ():
            step = line.numbers("step_num")
            marked = step >= 0
            if marked.any():
                rows = pd.DataFrame(
                    {
                        "word": np.asarray(line.names[marked]).astype(object),
                        "step": step[marked],
                        "start_ns": line.start_ns(space.zero_ns)[marked],
                        "duration_ns": line.duration_ns[marked],
                    }
                )
                frames.append(rows)
    return pd.concat(frames[1:] or frames, ignore_index=True)


def _marks_steps(plane: Plane) -> bool:
    return not plane.name.startswith("/device:") and "step_num" in plane.stat_names.values()


def find_steps(raw: DeviceEvents, annotated: pd.DataFrame) -> StepMarks:
    """The steps of one host's devices.  annotated: from `read_annotations`."""
    devices = np.unique(raw.events["device"].to_numpy())
    if raw.steps is not None and len(raw.steps):
        return _for_all(raw.steps, devices)
    annotated_steps = _annotated(annotated, devices)
    # A host that runs ahead annotates the launch, two nanoseconds in a step of a hundred: no operation is inside.
    if annotated_steps is not None and _share_inside(annotated_steps.frame, raw.events) >= _MOST:
        return annotated_steps
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
    """The devices' own marks; a device without any gets the span of the others' step."""
    without = np.setdiff1d(devices, table["device"])
    if not without.size:
        return StepMarks(frame=table.astype(STEP_COLUMNS))
    steps = (
        table.assign(end=table["start_ns"] + table["duration_ns"])
        .groupby("step")
        .agg({"start_ns": "min", "end": "max"})
    )
    rest = _frame(without, steps.index, steps["start_ns"], steps["end"] - steps["start_ns"])
    named = ", ".join(map(str, without))
    return StepMarks(
        frame=pd.concat([table, rest], ignore_index=True).astype(STEP_COLUMNS),
        notes=(f"devices {named} mark no steps of their own: those of the others are taken",),
    )


def _annotated(annotated: pd.DataFrame, devices: Ints) -> StepMarks | None:
    """The host's annotations, for all of its devices.  A step annotated on several threads counts once."""
    if not len(annotated):
        return None
    counts = annotated.groupby("word").agg(steps=("step", "nunique"), duration=("duration_ns", "sum"))
    # `decode` twice and `prefill` once: a loop of decoding is what is profiled, and the longer one of a tie.
    word = counts.sort_values(["steps", "duration"]).index[-1]
    rows = annotated[annotated["word"] == word]
    ends = (
        rows.assign(end=rows["start_ns"] + rows["duration_ns"]).groupby("step").agg({"start_ns": "min", "end": "max"})
    )
    others = sorted(set(counts.index) - {word})
    return StepMarks(
        frame=_frame(devices, ends.index, ends["start_ns"], ends["end"] - ends["start_ns"]),
        notes=(f"steps are those marked {word!r}, not {', '.join(map(repr, others))}",) if others else (),
    )


def _executed(raw: DeviceEvents) -> StepMarks | None:
    """Every execution of the program that takes the most time is a step."""
    runs = list_executions(raw)
    if not len(runs):
        return None
    # By time, not by number: a prefill of 200 ns runs once, a decode of 5 ns ten times; `jit_tiny(3)` runs between
    # steps.
    busiest = runs.groupby("module", observed=True)["duration_ns"].sum().idxmax()
    runs_of_busiest = runs[runs["module"] == busiest].sort_values("start_ns")
    frame = runs_of_busiest.assign(step=runs_of_busiest.groupby("device").cumcount())[list(STEP_COLUMNS)].astype(
        STEP_COLUMNS
    )
    return StepMarks(
        frame=frame,
        program=str(busiest),
        notes=(f"{EXECUTED} {busiest!r} is taken for one",),
    )


def list_executions(raw: DeviceEvents) -> pd.DataFrame:
    """Executions of programs, as the device marks them, else from their operations: device, module, run, times."""
    runs = raw.executions if raw.executions is not None and len(raw.executions) else _spans(raw.events)
    return runs[["device", "module", "run", "start_ns", "duration_ns"]]


def _spans(events: pd.DataFrame) -> pd.DataFrame:
    """Executions of programs, from their first operation's start to their last one's end."""
    operations = events[(events["run"] != -1) & (events["module"] != "")]
    known = operations[operations["device"] != UNKNOWN]
    # Runs of unknown devices may be partial: they count only where no device is known.
    operations = known if len(known) else operations
    ends = operations.assign(end=operations["start_ns"] + operations["duration_ns"])
    spans = ends.groupby(["device", "module", "run"], observed=True).agg({"start_ns": "min", "end": "max"})
    return spans.assign(duration_ns=spans["end"] - spans["start_ns"]).reset_index()


def _share_inside(frame: pd.DataFrame, events: pd.DataFrame) -> float:
    """The fraction of main-line operations that start inside a step of their device."""
    main = events[events["main"].to_numpy()]
    inside = 0
    for device, rows in main.groupby("device"):
        steps = frame[frame["device"] == device].sort_values("start_ns")
        begins = steps["start_ns"].to_numpy()
        index = np.searchsorted(begins, rows["start_ns"].to_numpy(), side="right") - 1
        ends = np.append(begins + steps["duration_ns"].to_numpy(), -np.inf)
        inside += int((rows["start_ns"].to_numpy() < ends[index]).sum())
    return inside / len(main) if len(main) else 1.0


def _frame(devices: Ints, step: Iterable[int], start_ns: Iterable[float], duration_ns: Iterable[float]) -> pd.DataFrame:
    """The same steps for each of these devices; STEP_COLUMNS."""
    steps = pd.DataFrame({"step": list(step), "start_ns": list(start_ns), "duration_ns": list(duration_ns)})
    return pd.concat([steps.assign(device=device) for device in devices], ignore_index=True)[list(STEP_COLUMNS)].astype(
        STEP_COLUMNS
    )
