"""What a simulated graph exposes of its communication."""

from collections.abc import Callable

import numpy as np

from compare.network.engine.graph_simulator import SimulatedGraph
from compare.network.graph.graph import COMPUTE, Transfer
from compare.timeline.arrays import Floats
from compare.timeline.intervals import Union, exposed_shares


def list_exposed(
    simulated: SimulatedGraph, num_ranks: int, key: Callable[[Transfer], str] = lambda transfer: transfer.collective
) -> dict[str, float]:
    """By collective, or by what `key` says of a transfer, the ns of a rank's step in which it is exposed; mean over the
    first so many ranks.

    Time that several collectives expose at once is divided evenly, so that all add up to the exposed time.
    """
    members = np.bincount(simulated.plan.classes.of[:num_ranks], minlength=simulated.plan.classes.count)
    transfers = simulated.plan.graph.transfers
    total: dict[str, float] = {}
    for index, weight in enumerate(members.tolist()):
        if not weight:
            continue
        table = simulated.table(index)
        computes, communicates = table.ops == COMPUTE, table.transfers >= 0
        starts, ends = simulated.starts[index], simulated.ends[index]
        busy = Union.of(starts[computes], ends[computes])
        alone: Floats = exposed_shares(starts[communicates], ends[communicates], busy)
        for number, ns in zip(table.transfers[communicates].tolist(), alone.tolist(), strict=True):
            name = key(transfers[number])
            total[name] = total.get(name, 0.0) + ns * weight / num_ranks
    return total
