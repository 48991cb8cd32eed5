"""What a transfer puts on a torus by the algorithm that the compiler chose, as the schedule model reads it."""

from collections.abc import Mapping
from itertools import product

import numpy as np

from compare.hlo.devices.groups import Groups
from compare.network.engine.footprint import Footprint, PassFootprint, StepFootprint, add_uses, measure_step, pack_uses
from compare.network.engine.links import Links
from compare.network.machines.kinds import ALL_GATHER, FULLY_CONNECTED, LINE, RING
from compare.network.machines.machine import Machine
from compare.schedule.compiler_algorithm import Algorithm
from compare.schedule.exchange import Phase, count_hops, list_phases
from compare.schedule.links import Torus
from meshes.devices.topology import Place

Choices = Mapping[str, Algorithm]
"""By row of the collectives table, the compiler's algorithm."""
_MOST_SIDES = 3


def as_torus(machine: Machine) -> Torus | None:
    """The torus of a machine with up to three rings and lines, and the devices of a chip behind them; else `None`."""
    dims = machine.dims
    sides = [dim for dim in dims if dim.kind in (RING, LINE)]
    rest = dims[len(sides) :]
    on_chip = rest[0].size if len(rest) == 1 and rest[0].kind == FULLY_CONNECTED else 1
    if not sides or len(sides) > _MOST_SIDES or tuple(sides) != dims[: len(sides)] or (rest and on_chip == 1):
        return None
    x, y, z = (*(dim.size for dim in sides), 1, 1)[:3]
    places = tuple(
        Place(slice_index=0, x=i, y=j, z=k, core=core)
        for core, k, j, i in product(range(on_chip), range(z), range(y), range(x))
    )
    return Torus(places, (x, y, z), tuple(dim.kind == RING for dim in sides))


def measure_compiled(links: Links, torus: Torus, kind: str, groups: Groups, algorithm: Algorithm) -> Footprint:
    """Phase after phase; groups in ranks."""
    passes = [
        _measure_phase(links, phase, kind, groups)
        for phase in list_phases(kind, groups, torus, algorithm)
        if phase.messages
    ]
    return Footprint(np.arange(len(groups)), tuple(passes))


def _measure_phase(links: Links, phase: Phase, kind: str, groups: Groups) -> PassFootprint:
    columns = list(zip(*phase.messages, strict=True))
    source, target, group = (np.array(columns[column], np.int64) for column in (0, 1, 3))
    sizes = np.array([len(each) for each in groups], np.float64) if kind == ALL_GATHER else np.ones(len(groups))
    loads = np.array(columns[2], np.float64) * sizes[group]
    routes = links.route(source, target)
    step = measure_step(links, routes, loads, group, len(groups), 1, 0.0)
    lengths = np.bincount(routes.message, minlength=source.size)
    hops = np.zeros_like(step.hops)
    dim = int(np.bincount(links.slot_dim[routes.link % links.slots], minlength=hops.shape[1]).argmax())
    hops[:, dim] = count_hops(phase, lengths, group, len(groups))
    own: dict[tuple[int, int], float] = {}
    add_uses(own, routes, loads, group)
    return PassFootprint(-1, (StepFootprint(hops, step.load, 1, 0.0),), pack_uses(own))
