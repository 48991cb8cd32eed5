"""What ASTRA-sim reads beside a trace: the network, the system and the memory, of a machine in ticks, and back.

A tick is the unit of a trace's durations: 1 ps in our own, 1 ns elsewhere.  ASTRA-sim's network takes GB of 2^30 bytes
a second and ns, and counts both in ticks of 1 ns: so a machine in ps has 1/1000 of the bandwidth, and 1000 times the
latency.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isfinite, prod
from pathlib import Path

from compare.chakra.custom import read_custom
from compare.chakra.run_line import RunLine, read_run_line
from compare.network.astra_sim.options import Options
from compare.network.astra_sim.remote import PER_NODE, PER_NPU, POOL, RemoteMemory
from compare.network.machines.kinds import ALL_REDUCE, BASELINE, FULLY_CONNECTED, KINDS, LOCAL_BW_AWARE, RING, SWITCH
from compare.network.machines.machine import Algorithm, Algorithms, Dim, Machine
from compare.network.machines.tpu import astra_sim_machine
from compare.network.machines.words import is_words, parse_algorithm, parse_kind
from compare.timeline.errors import TimingError, name_file, name_place
from compare.timeline.yaml_document import YAML_BYTES, parse_yaml
from meshes.devices.chip import Chip
from meshes.devices.topology import Topology
from meshes.process.documents import read_json
from meshes.process.one_line import quote

GIB = 2**30
"""ASTRA-sim's GB of a network; those of its memory are 1e9."""
ENDPOINT = 10
"""Ticks; ASTRA-sim aborts at 0."""
MEMORY = '{"memory-type": "NO_MEMORY_EXPANSION"}\n'
_TOPOLOGIES = {RING: "Ring", SWITCH: "Switch", FULLY_CONNECTED: "FullyConnected"}
_OPTIMIZATIONS = {LOCAL_BW_AWARE: "localBWAware", BASELINE: "baseline"}
_NO_MEMORY = "NO_MEMORY_EXPANSION"
_SYSTEM = (
    "scheduling-policy", "endpoint-delay", "active-chunks-per-dimension", "preferred-dataset-splits",
    "collective-optimization", "local-mem-bw", "peak-perf", "roofline-enabled", "boost-mode", "trace-enabled",
    "local-reduction-delay", "replay-only", "track-local-mem", "model-shared-bus", "L", "o", "g", "G",
    "inter-dimension-scheduling", "intra-dimension-scheduling",
)  # fmt: skip
_ONLY = {"model-shared-bus": 0}
"""Switches that change times, and the one way in which they are simulated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What stands beside a trace."""

    machine: Machine
    """In the trace's ticks; with a peak where the roofline says the length of compute."""
    options: Options
    """Of ASTRA-sim."""
    unnamed_kinds: tuple[str, ...] = ()
    """Collectives for which the system file has no algorithm."""


def export_machine(topology: Topology, *, chip: Chip | None = None) -> Machine:
    """The machine of a TPU slice as an export says it, in ns: one ring a side; where all sides close, both ways."""
    machine = replace(astra_sim_machine(topology.name, chip=chip), endpoint_ns=ENDPOINT)
    sides = [wraps for side, wraps in zip(topology.shape, topology.wraps, strict=True) if side > 1]
    if not sides or not all(sides):
        return machine
    return replace(machine, multi=BASELINE, chunks=2, active_chunks=2, queues=2)


def count_in_ps(machine: Machine) -> Machine:
    """The same machine in ticks of 1 ps; the endpoint delay is in ticks, and stays."""
    return _stretch(machine, 1000)


def count_in_ns(machine: Machine, tick_ps: int) -> Machine:
    """A machine in ticks of so many ps, in ns: as our own engine takes it."""
    endpoint = machine.endpoint_ns and round(machine.endpoint_ns * tick_ps / 1000)
    return replace(_stretch(machine, tick_ps / 1000), endpoint_ns=endpoint)


def _stretch(machine: Machine, factor: float) -> Machine:
    if factor == 1:
        return machine
    dims = tuple(
        replace(dim, bytes_per_ns=dim.bytes_per_ns / factor, latency_ns=dim.latency_ns * factor) for dim in machine.dims
    )
    memory, peak = machine.memory_bytes_per_ns, machine.peak_flops_per_ns
    return replace(
        machine, dims=dims, memory_bytes_per_ns=memory and memory / factor, peak_flops_per_ns=peak and peak / factor
    )


def write_network(machine: Machine) -> str:
    """`network.yml`.  Raises `TimingError` for a dim that ASTRA-sim has not."""
    kinds = [_TOPOLOGIES.get(dim.kind) for dim in machine.dims]
    if None in kinds:
        raise TimingError(f"ASTRA-sim has no {machine.dims[kinds.index(None)].kind}")
    rows: dict[str, list[str | int | None]] = {
        "topology": [*kinds],
        "npus_count": [dim.size for dim in machine.dims],
        "bandwidth": [f"{dim.bytes_per_ns * 1e9 / GIB:.15g}" for dim in machine.dims],
        "latency": [f"{dim.latency_ns:.15g}" for dim in machine.dims],
    }
    return "".join(f"{key}: [ {', '.join(map(str, values))} ]\n" for key, values in rows.items())


def write_system(machine: Machine) -> str:
    """`system.json`."""
    system: dict[str, object] = {
        "scheduling-policy": "FIFO",
        "endpoint-delay": ENDPOINT if machine.endpoint_ns is None else machine.endpoint_ns,
        "active-chunks-per-dimension": machine.active_chunks,
        "preferred-dataset-splits": machine.chunks,
        **{f"{kind}-implementation": [_word(algorithm) for algorithm in machine.algorithms.of(kind)] for kind in KINDS},
        "collective-optimization": _OPTIMIZATIONS[machine.multi],
    }
    if machine.memory_bytes_per_ns is not None:
        system["local-mem-bw"] = float(f"{machine.memory_bytes_per_ns:.15g}")
    return json.dumps(system, indent=2) + "\n"


def _word(algorithm: Algorithm) -> str:
    """`halving-doubling` -> `halvingDoubling`, `direct:3` -> `direct3`."""
    first, *rest = algorithm.name.split("-")
    return first + "".join(word.capitalize() for word in rest) + (str(algorithm.window) if algorithm.window else "")


def read_settings(folder: Path, *, num_ranks: int) -> Settings:
    """Of a folder's `network.yml` and `system.json`; of `run.txt` and `memory.json` where they are there.

    `OSError` where a file is not there; `TimingError`, one line that names the file and its key, where it is none.
    """
    network, system, run, memory = (folder / name for name in ("network.yml", "system.json", "run.txt", "memory.json"))
    with name_file(network):
        dims = _read_network(network)
        if prod(dim.size for dim in dims) != num_ranks:
            sizes = " x ".join(str(dim.size) for dim in dims)
            raise TimingError(f"npus_count: {sizes} ranks, and the trace has {num_ranks:,}")
    with name_file(run):
        line = read_run_line(run)
    with name_file(memory):
        remote = _read_memory(memory)
    with name_file(system):
        return _read_system(read_json(system), dims, folder, line=line, remote=remote)


def _read_network(path: Path) -> tuple[Dim, ...]:
    with path.open("rb") as file:
        table = parse_yaml(file.read(YAML_BYTES + 1))
    if not isinstance(table, dict):
        raise TimingError("a table with topology, npus_count, bandwidth and latency was expected")
    columns = {}
    for key in ("topology", "npus_count", "bandwidth", "latency"):
        values = table.get(key)
        if not isinstance(values, list) or not values or len(values) != len(table["topology"]):
            raise TimingError(f"{key}: a list with one entry for each dim, not {quote(values)}")
        columns[key] = values
    dims = []
    for index, (kind, size, bandwidth, latency) in enumerate(zip(*columns.values(), strict=True)):
        if not isinstance(size, int) or isinstance(size, bool):
            raise TimingError(f"npus_count: a whole number for each dim, not {quote(size)}")
        rate, hop = _number("bandwidth", bandwidth), _number("latency", latency)
        with name_place(f"dim {index}: "):
            dims.append(Dim(kind=parse_kind(str(kind)), size=size, bytes_per_ns=rate * GIB / 1e9, latency_ns=hop))
    return tuple(dims)


def _read_system(
    table: object, dims: tuple[Dim, ...], folder: Path, *, line: RunLine, remote: RemoteMemory | None
) -> Settings:
    if not isinstance(table, dict):
        raise TimingError("a table of settings was expected")
    for key in table:
        if key not in (*_SYSTEM, *(f"{kind}-implementation{end}" for kind in KINDS for end in ("", "-custom"))):
            raise TimingError(f"{quote(key)}: not simulated; known are {', '.join(_SYSTEM)}, and …-implementation")
    for key, allowed in _ONLY.items():
        if table.get(key, allowed) != allowed:
            raise TimingError(f"{key}: only {allowed} is simulated, not {quote(table[key])}")
    policy = table.get("scheduling-policy")
    if policy not in ("FIFO", "LIFO", "EXPLICIT"):
        raise TimingError(f"scheduling-policy: FIFO, LIFO or EXPLICIT, not {quote(policy)}")
    custom = {
        kind: read_custom(table[key], folder, key)
        for kind in KINDS
        if (key := f"{kind}-implementation-custom") in table
    }
    algorithms, unnamed = _read_algorithms(table, len(dims))
    endpoint = ENDPOINT
    if "endpoint-delay" in table:  # without it there the scale has nothing to multiply
        endpoint = int(int(_number("endpoint-delay", table["endpoint-delay"])) * line.injection_scale)
    machine = Machine(
        dims=dims,
        algorithms=algorithms,
        multi=_read_multi(table, is_used=ALL_REDUCE not in (*custom, *unnamed) and (len(dims) > 1 or line.queues > 1)),
        chunks=_whole(table, "preferred-dataset-splits", None),
        active_chunks=_whole(table, "active-chunks-per-dimension", 1),
        queues=line.queues,
        memory_bytes_per_ns=_number("local-mem-bw", table["local-mem-bw"]) if "local-mem-bw" in table else None,
        # TFLOP/s are 1,000 flops a ns.
        peak_flops_per_ns=1000 * _number("peak-perf", table.get("peak-perf"))
        if _is_on(table, "roofline-enabled")
        else None,
        endpoint_ns=endpoint,
    )
    options = Options(
        aware=line.aware, rendezvous=line.rendezvous, replays=_is_on(table, "replay-only"), remote=remote, custom=custom
    )
    return Settings(
        machine=machine, options=options, unnamed_kinds=tuple(kind for kind in unnamed if kind not in custom)
    )


def _is_on(table: Mapping[str, object], key: str) -> bool:
    return _number(key, table.get(key, 0)) != 0


def _read_multi(table: Mapping[str, object], *, is_used: bool) -> str:
    """Not set, ASTRA-sim takes either."""
    optimization = table.get("collective-optimization")
    multi = {word: name for name, word in _OPTIMIZATIONS.items()}.get(str(optimization))
    if multi is None and (is_used or optimization is not None):
        raise TimingError(f"collective-optimization: localBWAware or baseline, not {quote(optimization)}")
    return multi or LOCAL_BW_AWARE


def _read_algorithms(table: Mapping[str, object], num_dims: int) -> tuple[Algorithms, tuple[str, ...]]:
    """(those of each kind, the kinds of which nothing is said, which have rings here)."""
    by_kind = {}
    for kind in KINDS:
        words = table.get(f"{kind}-implementation")
        if words is None:
            continue
        with name_place(f"{kind}-implementation: "):
            if not is_words(words):
                raise TimingError(f"a list of words, one for each dim, not {quote(words)}")
            by_kind[kind] = tuple(map(parse_algorithm, words))
    rings = Algorithms.alike((Algorithm(RING),) * num_dims)
    return rings.replace(by_kind), tuple(kind for kind in KINDS if kind not in by_kind)


def _read_memory(path: Path) -> RemoteMemory | None:
    """`None` where there is no file, or no memory behind the ranks'."""
    try:
        table = read_json(path)
    except FileNotFoundError:
        return None
    if not isinstance(table, dict):
        raise TimingError("a table with memory-type was expected")
    kind = table.get("memory-type")
    if kind == _NO_MEMORY:
        return None
    if kind not in (PER_NPU, PER_NODE, POOL):
        raise TimingError(f"memory-type: {_NO_MEMORY}, {PER_NPU}, {PER_NODE} or {POOL}, not {quote(kind)}")
    latency, rate = (int(_number(key, table.get(key, 0))) for key in ("remote-mem-latency", "remote-mem-bw"))
    nodes, of_node = (_whole(table, key, 1) for key in ("num-nodes", "num-npus-per-node"))
    if latency < 0 or rate < 1 or nodes < 1 or of_node < 1:
        raise TimingError(
            "remote-mem-latency from 0, remote-mem-bw, num-nodes and num-npus-per-node from 1 are simulated"
        )
    return RemoteMemory(kind=kind, latency=latency, bytes_a_tick=rate, ranks_of_node=of_node, nodes=nodes)


def _whole(table: Mapping[str, object], key: str, default: int | None) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TimingError(f"{key}: a whole number, not {quote(value)}")
    return value


def _number(key: str, value: object) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        if not isfinite(number := float(value)):
            raise ValueError
        return number
    except (ValueError, OverflowError):
        raise TimingError(f"{key}: a number, not {quote(value)}") from None
