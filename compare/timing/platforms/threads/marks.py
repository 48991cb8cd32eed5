"""The steps that a program marks on its host, as its devices see them.

A mark (`jax.profiler.StepTraceAnnotation`, torch_xla's `TraceMe` with `step_num`) lies around what launches a step.
The devices may run it later.  So a run belongs to the step in which it was launched, and a device's step lasts until
the last of its operations has ended, or the mark, and begins when the one before has ended, or with the mark.
"""

import numpy as np
import pandas as pd

from compare.timing.arrays import Ints
from compare.timing.platforms.threads.thread_timeline import NONE, Threads
from compare.timing.timeline import STEP_COLUMNS

_MOST = 0.5
"""Marks in which less of the operations are launched than this belong to something else."""


def find_marks(threads: Threads) -> pd.DataFrame:
    """The steps that most events of one name mark: columns step, begin, end in ps, in order.

    What several threads mark at once under one number is one step.  Where a number comes again, steps are counted.
    """
    number = threads.numbers("step_num")
    events = np.flatnonzero((number != NONE) & (threads.ends > threads.begins))
    rows = pd.DataFrame(
        {
            "word": np.asarray(threads.names[events]).astype(object),
            "step": number[events],
            "begin": threads.time(threads.begins[events]),
            "end": threads.time(threads.ends[events]),
        }
    )
    sizes = (
        rows.assign(long=rows["end"] - rows["begin"]).groupby("word").agg(num=("step", "size"), long=("long", "sum"))
    )
    words = sizes.sort_values(["num", "long"]).index
    own = rows[rows["word"].isin(words[-1:])].sort_values(["step", "begin"], ignore_index=True)
    reached = own.groupby("step")["end"].cummax().shift(fill_value=0)
    apart = own["step"].diff().ne(0) | (own["begin"] >= reached)
    merged = own.groupby(apart.cumsum()).agg({"step": "first", "begin": "min", "end": "max"}).sort_values("begin")
    if merged["step"].duplicated().any():
        merged["step"] = np.arange(len(merged))
    return pd.DataFrame(merged.reset_index(drop=True))


def steps_of(steps_by_device: pd.DataFrame, events: pd.DataFrame, launched: Ints) -> pd.DataFrame | None:
    """Columns of STEPS; None where too little was launched in the marks.

    events: device, start_ns, duration_ns of operations.  launched: when each was, in ps.
    """
    begin, end = steps_by_device["begin"].to_numpy(), steps_by_device["end"].to_numpy()
    step = np.searchsorted(begin, launched, side="right") - 1
    inside = (step >= 0) & (launched < np.append(end, 0)[step])
    if not len(steps_by_device) or inside.mean() < _MOST:
        return None
    devices, row = np.unique(events["device"].to_numpy(), return_inverse=True)
    done = (events["start_ns"] + events["duration_ns"]).to_numpy()
    until = np.tile(end / 1e3, (devices.size, 1))
    np.maximum.at(until, (row[inside], step[inside]), done[inside])
    until = np.maximum.accumulate(until, axis=1)
    since = np.maximum(begin / 1e3, np.pad(until[:, :-1], ((0, 0), (1, 0)), constant_values=-np.inf))
    frame = {
        "device": np.repeat(devices, len(steps_by_device)),
        "step": np.tile(steps_by_device["step"].to_numpy(), devices.size),
        "start_ns": since.ravel(),
        "duration_ns": (until - since).ravel(),
    }
    return pd.DataFrame(frame).astype(STEP_COLUMNS)
