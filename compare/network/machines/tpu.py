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

from compare.network.machines.machine import (
    FULLY_CONNECTED,
    KINDS,
    LINE,
    RING,
    SWITCH,
    TWO_WAY_RING,
    Algorithm,
    Algorithms,
    Dim,
    Machine,
)
from compare.schedule.hardware import Hardware
from compare.schedule.time_file import CalibratedTimes
from compare.timeline.errors import TimingError
from meshes.devices.topology import Topology


def tpu_machine(name: str, *, times: CalibratedTimes | None = None) -> Machine:
    """`"v6e:2x4"`, or `"2xv5e:4x4"` for two slices.  Raises `MeshError` for an unknown name.

    times: measured on chips of this generation, instead of its fitted rates; the machine's name says so.
    """
    topology = Topology.parse(name)
    rates = times.hardware if times else Hardware.of(topology.generation)
    dims = [
        Dim(kind=RING if wraps else LINE, size=side, bytes_per_ns=rates.link_bytes_per_ns, latency_ns=rates.hop_ns)
        for side, wraps in zip(topology.shape, topology.wraps, strict=True)
        if side > 1
    ]
    if topology.generation.devices > 1:
        dims.append(
            Dim(kind=FULLY_CONNECTED, size=topology.generation.devices,
                bytes_per_ns=rates.chip_bytes_per_ns, latency_ns=rates.hop_ns)
        )  # fmt: skip
    if topology.slices > 1:
        dims.append(
            Dim(kind=SWITCH, size=topology.slices,
                bytes_per_ns=rates.dcn_bytes_per_ns, latency_ns=rates.dcn_launch_ns / 2)
        )  # fmt: skip
    if not dims:
        raise TimingError(f"{name} is one device, which has nobody to talk to")
    algorithms = tuple(Algorithm(TWO_WAY_RING if dim.kind == RING else RING) for dim in dims)
    return Machine(
        name=f"{topology.name} ({times.words})" if times else topology.name,
        dims=tuple(dims),
        algorithms=Algorithms.alike(algorithms),
        launch_ns=rates.launch_ns,
        compiled=KINDS,
    )


def describe_rings(name: str) -> str:
    """That `astra_sim_machine` closes the lines of a slice to rings; empty where it has none of more than two chips."""
    sizes = [str(dim.size) for dim in tpu_machine(name).dims if dim.kind == LINE and dim.size > 2]
    if not sizes:
        return ""
    lines = f"line of {sizes[0]} chips is" if len(sizes) == 1 else f"lines of {' and '.join(sizes)} chips are"
    rings = "a ring" if len(sizes) == 1 else "rings"
    return f"ASTRA-sim has no lines: the {lines} {rings} here, with a link more than {name} has"


def choose_times(name: str, topology: str, times: CalibratedTimes | None) -> CalibratedTimes | None:
    """Of a slice by name: `times`, measured on chips of `topology`, where both are of one generation."""
    alike = times is not None and Topology.parse(name).generation == Topology.parse(topology).generation
    return times if alike else None


def astra_sim_machine(name: str, *, times: CalibratedTimes | None = None) -> Machine:
    """The same slice as inputs for ASTRA-sim can say it.

    Lines are rings, rings go one way, there is no launch, and a reduction goes through the memory of the data sheet.
    """
    machine = tpu_machine(name, times=times)
    row = Topology.parse(name).generation
    dims = tuple(replace(dim, kind=RING) if dim.kind == LINE else dim for dim in machine.dims)

    def one_way(algorithms: tuple[Algorithm, ...]) -> tuple[Algorithm, ...]:
        return tuple(Algorithm(RING) if each.name == TWO_WAY_RING else each for each in algorithms)

    by_kind = machine.algorithms
    return replace(
        machine,
        dims=dims,
        algorithms=Algorithms(
            all_reduce=one_way(by_kind.all_reduce),
            all_gather=one_way(by_kind.all_gather),
            reduce_scatter=one_way(by_kind.reduce_scatter),
            all_to_all=one_way(by_kind.all_to_all),
        ),
        memory_bytes_per_ns=row.hbm_bytes_per_s / row.devices / 1e9,
        launch_ns=0.0,
        compiled=(),
    )
