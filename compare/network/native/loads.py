"""The busiest link of a step in one dim, from its messages: how many bytes they put on it, and how far they go.

A message takes the shorter way; half way round a ring it goes upwards.  Through a switch it takes the link up from its
sender and the link down to its receiver.
"""

import numpy as np

from compare.network.algorithms import Step
from compare.network.engine.links import way_along
from compare.network.machines.kinds import FULLY_CONNECTED, LINE, SWITCH
from compare.network.machines.machine import Dim
from compare.timeline.arrays import Floats, Ints


def measure_step(step: Step, dim: Dim) -> tuple[int, float]:
    """(links of the longest way, bytes on the busiest link per byte of a rank's input)."""
    source, target, share = step.source, step.target, step.share
    if dim.kind == SWITCH:
        return 2, float(max(np.bincount(source, share).max(), np.bincount(target, share).max()))
    if dim.kind == FULLY_CONNECTED:
        _, link = np.unique(source * dim.size + target, return_inverse=True)
        return 1, float(np.bincount(link, share).max())
    if step.is_turned and dim.kind == LINE:
        # Those that leave the end go back to the start; d on either side of the middle send over it.
        across = np.minimum(target, dim.size - target)
        return int((dim.size - across).max()), float((across * share).sum())
    direction, hops = way_along(dim, source, target)
    loads = []
    for way in (1, -1):
        goes = direction == way
        if step.is_turned:  # all links of a ring carry the same
            loads.append(float((hops * share)[goes].sum()))
        elif goes.any():
            first = source[goes] if way == 1 else dim.size - 1 - source[goes]
            loads.append(_cover(first, hops[goes], share[goes], dim.size))
    return int(hops.max()), max(loads)


def _cover(first: Ints, hops: Ints, share: Floats, size: int) -> float:
    """The most on one link, where each message crosses some links (modulo the size) from its first on."""
    begins = np.bincount(first, share, minlength=2 * size)
    ends = np.bincount(first + hops, share, minlength=2 * size)
    carried = np.cumsum(begins - ends)
    return float((carried[:size] + carried[size : 2 * size]).max())
