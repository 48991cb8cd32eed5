"""Time of a step by class of kernel: each HLO operation is in exactly one class.

The classes are those of CharLLM-PPT's figures 10 and 15 (arXiv:2509.10371), with all-to-all beside them.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd

from compare.sweep.summary import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    CLASSES,
    ELEMENTWISE,
    IDLE,
    MATMUL,
    NORM,
    OTHER,
    OTHER_COMMUNICATION,
    REDUCE_SCATTER,
    SEND_RECEIVE,
)
from compare.timeline.timeline import COMMUNICATION, COPY, OCCUPIED

_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "all-reduce": ALL_REDUCE,
        "all-gather": ALL_GATHER,
        "reduce-scatter": REDUCE_SCATTER,
        "all-to-all": ALL_TO_ALL,
        "ragged-all-to-all": ALL_TO_ALL,
        "collective-permute": SEND_RECEIVE,
    }
)


def classify_operations(events: pd.DataFrame) -> "pd.Series[str]":
    """HLO operation -> its class, from all its events.

    Of compute: with FLOPs of dots or convolutions it is a matmul, fused or not; else by its scope a norm; else, where
    it moves or makes elements, or waits for a local copy, memory and elementwise.  Of communication: its kind.
    """
    roles = events[events["role"].isin((*OCCUPIED, COMMUNICATION))]
    table = pd.DataFrame(
        {
            "operation": _operation(roles),
            "communicates": roles["role"].eq(COMMUNICATION),
            "kind": roles["kind"].astype(str),
            "norm": roles["scope"].astype(str).eq("norm"),
            "matrix": roles["matrix_flops"].fillna(0) > 0,
            "moves": (roles["memory_bytes"].fillna(0) > 0)
            | (roles["vector_ops"].fillna(0) > 0)
            | roles["role"].eq(COPY),
        }
    )
    of = table.groupby("operation").agg(
        {"communicates": "max", "kind": "max", "norm": "max", "matrix": "max", "moves": "max"}
    )
    words = np.select(
        [of["communicates"], of["matrix"], of["norm"], of["moves"]],
        [of["kind"].map(_KINDS).fillna(OTHER_COMMUNICATION), MATMUL, NORM, ELEMENTWISE],
        default=OTHER,
    )
    return pd.Series(words, index=of.index)


def time_by_class(events: pd.DataFrame, *, step_ns: float, device_steps: int) -> dict[str, float]:
    """CLASSES -> ns of a step, mean over devices and steps; they add up to the step.

    Compute is its length, communication its exposed part (what is hidden is compute's), the rest is idle.
    events: with column `stands_for`, of one program.  device_steps: devices × steps.
    """
    rows = events[events["role"].isin((*OCCUPIED, COMMUNICATION)) & events["step"].ge(0)]
    classes = _operation(rows).map(classify_operations(events))
    lengths = rows["alone_ns"].where(rows["role"].eq(COMMUNICATION), rows["duration_ns"]) * rows["stands_for"]
    sums = lengths.groupby(classes).sum() / device_steps
    times = {name: float(sums.get(name, 0.0)) for name in CLASSES[:-1]}
    return {**times, IDLE: max(step_ns - sum(times.values()), 0.0)}


def _operation(rows: pd.DataFrame) -> "pd.Series[str]":
    """The collective, or the instruction, or what the timeline calls it."""
    name, op = rows["name"].astype(str), rows["hlo_op"].astype(str)
    compute = op.where(op.ne(""), name)
    collective = rows["collective"].astype(str)
    return compute.where(rows["role"].isin(OCCUPIED), collective.where(collective.ne(""), "communication " + name))
