"""TPU slices as machines, from the data sheets and the fitted rates of the schedule model.

| part of a slice | dim |
|---|---|
| a side of 2 chips or more, with a link between its ends | `ring`, both ways |
| a side of 2 chips or more, without | `line` |
| the two devices of a chip (v4, tpu7x) | `fully-connected` of 2 |
| several slices | `switch`: the data-centre network, two hops of half its launch |

Reductions are in the fitted rates of the links.  Dims stand in the order x, y, z, core, slice; so ranks are numbered
as libtpu numbers devices, but for the two devices of a chip, which libtpu counts first.
"""

from dataclasses import replace

from compare.network.machines.kinds import FULLY_CONNECTED, KINDS, LINE, RING, SWITCH, TWO_WAY_RING
from compare.network.machines.machine import Algorithm, Algorithms, Dim, Machine
from compare.schedule.hardware import Hardware, name_slice
from compare.timeline.errors import TimingError
from meshes.devices.chip import Chip
from meshes.devices.topology import Topology


def tpu_machine(name: str, *, chip: Chip | None = None) -> Machine:
    """`"v6e:2x4"`, or `"2xv5e:4x4"` for two slices.  Raises `MeshError` for an unknown name.

    chip: a user's; where it is of this generation its rates count, and the machine's name says so.
    """
    topology = Topology.parse(name)
    chip = _choose(chip, topology)
    rates = Hardware.of(chip)
    sides = [
        *((RING if wraps else LINE, side) for side, wraps in zip(topology.shape, topology.wraps, strict=True)),
        (FULLY_CONNECTED, topology.generation.devices),
        (SWITCH, topology.slices),
    ]
    dims = []
    for kind, size in sides:
        if size > 1:
            bandwidth, latency = find_rates(kind, rates)
            dims.append(Dim(kind=kind, size=size, bytes_per_ns=bandwidth, latency_ns=latency))
    if not dims:
        raise TimingError(f"{name} is one device, which has nobody to talk to")
    algorithms = tuple(Algorithm(TWO_WAY_RING if dim.kind == RING else RING) for dim in dims)
    return Machine(
        name=name_slice(topology.name, chip),
        dims=tuple(dims),
        algorithms=Algorithms.alike(algorithms),
        launch_ns=rates.launch_ns,
        compiled=KINDS,
    )


def find_rates(kind: str, rates: Hardware) -> tuple[float, float]:
    """Bandwidth and latency of a chip's links in a dim of some kind."""
    if kind == SWITCH:
        return rates.dcn_bytes_per_ns, rates.dcn_launch_ns / 2
    return rates.chip_bytes_per_ns if kind == FULLY_CONNECTED else rates.link_bytes_per_ns, rates.hop_ns


def _choose(chip: Chip | None, topology: Topology) -> Chip:
    row = topology.generation
    return chip if chip is not None and chip.name == row.name else row


def describe_rings(name: str) -> str:
    """That `astra_sim_machine` closes the lines of a slice to rings; empty where it has none of more than two chips."""
    sizes = [str(dim.size) for dim in tpu_machine(name).dims if dim.kind == LINE and dim.size > 2]
    if not sizes:
        return ""
    lines = f"line of {sizes[0]} chips is" if len(sizes) == 1 else f"lines of {' and '.join(sizes)} chips are"
    rings = "a ring" if len(sizes) == 1 else "rings"
    return f"ASTRA-sim has no lines: the {lines} {rings} here, with a link more than {name} has"


def astra_sim_machine(name: str, *, chip: Chip | None = None) -> Machine:
    """The same slice as inputs for ASTRA-sim can say it.

    Lines are rings, rings go one way, there is no launch, and a reduction goes through the memory of the data sheet.
    """
    machine = tpu_machine(name, chip=chip)
    row = _choose(chip, Topology.parse(name))
    dims = tuple(replace(dim, kind=RING) if dim.kind == LINE else dim for dim in machine.dims)

    def one_way(algorithms: tuple[Algorithm, ...]) -> tuple[Algorithm, ...]:
        return tuple(Algorithm(RING) if each.name == TWO_WAY_RING else each for each in algorithms)

    return replace(
        machine,
        dims=dims,
        algorithms=machine.algorithms.change(one_way),
        memory_bytes_per_ns=row.hbm_bytes_per_s / row.devices / 1e9,
        launch_ns=0.0,
        compiled=(),
    )
