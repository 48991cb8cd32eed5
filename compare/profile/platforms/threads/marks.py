"""The annotated steps of a host, as steps of its devices.

An annotation (`jax.profiler.StepTraceAnnotation`, torch_xla's `TraceMe` with `step_num`) encloses the launches of a
step; the devices may run it later.  So a run belongs to the step in which it was launched; a device's step ends with
its last operation or the annotation, whichever is later, and begins with the previous step's end or the annotation.
"""

import numpy as np
import pandas as pd

from compare.profile.platforms.threads.thread_timeline import NONE, Threads
from compare.timeline.arrays import Ints
from compare.timeline.timeline import STEP_COLUMNS

_MOST = 0.5
"""Annotations in which less than this fraction of the operations is launched are not steps."""


def find_marks(threads: Threads) -> pd.DataFrame:
    """The steps of the most frequent annotation name: columns step, begin, end in ps, in order.

    Concurrent annotations of one number on several threads are one step.  If a number recurs, steps are renumbered.
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
    marks = rows[rows["word"].isin(words[-1:])].sort_values(["step", "begin"], ignore_index=True)
    reached = marks.groupby("step")["end"].cummax().shift(fill_value=0)
    apart = marks["step"].diff().ne(0) | (marks["begin"] >= reached)
    merged = marks.groupby(apart.cumsum()).agg({"step": "first", "begin": "min", "end": "max"}).sort_values("begin")
    if merged["step"].duplicated().any():
        merged["step"] = np.arange(len(merged))
    return pd.DataFrame(merged.reset_index(drop=True))


def steps_of(marks: pd.DataFrame, events: pd.DataFrame, launched: Ints) -> pd.DataFrame | None:
    """Columns of STEP_COLUMNS; `None` where too few operations were launched within the marks.

    events: device, start_ns, duration_ns of operations.  launched: launch time of each, in ps.
    """
    begin, end = marks["begin"].to_numpy(), marks["end"].to_numpy()
    step = np.searchsorted(begin, launched, side="right") - 1
    inside = (step >= 0) & (launched < np.append(end, 0)[step])
    if not len(marks) or inside.mean() < _MOST:
        return None
    devices, row = np.unique(events["device"].to_numpy(), return_inverse=True)
    done = (events["start_ns"] + events["duration_ns"]).to_numpy()
    until = np.tile(end / 1e3, (devices.size, 1))
    np.maximum.at(until, (row[inside], step[inside]), done[inside])
    until = np.maximum.accumulate(until, axis=1)
    since = np.maximum(begin / 1e3, np.pad(until[:, :-1], ((0, 0), (1, 0)), constant_values=-np.inf))
    frame = {
        "device": np.repeat(devices, len(marks)),
        "step": np.tile(marks["step"].to_numpy(), devices.size),
        "start_ns": since.ravel(),
        "duration_ns": (until - since).ravel(),
    }
    return pd.DataFrame(frame).astype(STEP_COLUMNS)
