"""What ASTRA-sim reads beside a trace: the network, the system and the memory, of a machine in ticks, and back.

A tick is the unit of a trace's durations: 1 ps in our own, 1 ns elsewhere.  ASTRA-sim's network takes GB of 2^30 bytes
a second and ns, and counts both in ticks of 1 ns: so a machine in ps has 1/1000 of the bandwidth, and 1000 times the
latency.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path

from compare.timing.errors import TimingError
from compare.timing.model.time_file import CalibratedTimes
from compare.timing.network.machines.machine import (
    BASELINE,
    FULLY_CONNECTED,
    KINDS,
    LOCAL_BW_AWARE,
    RING,
    SWITCH,
    Algorithm,
    Algorithms,
    Dim,
    Machine,
)
from compare.timing.network.machines.tpu import astra_sim_machine
from compare.timing.network.machines.words import parse_algorithm, parse_kind
from compare.timing.yaml_document import YAML_BYTES, parse_yaml
from meshes.devices.topology import Topology
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

GIB = 2**30
"""ASTRA-sim's GB of a network; those of its memory are 1e9."""
ENDPOINT = 10
"""Ticks; ASTRA-sim aborts at 0."""
MEMORY = '{"memory-type": "NO_MEMORY_EXPANSION"}\n'
_TOPOLOGIES = {RING: "Ring", SWITCH: "Switch", FULLY_CONNECTED: "FullyConnected"}
_OPTIMIZATIONS = {LOCAL_BW_AWARE: "localBWAware", BASELINE: "baseline"}
_SYSTEM = (
    "scheduling-policy", "endpoint-delay", "active-chunks-per-dimension", "preferred-dataset-splits",
    "collective-optimization", "local-mem-bw", "peak-perf", "roofline-enabled", "boost-mode", "trace-enabled",
    "local-reduction-delay", "replay-only", "track-local-mem", "model-shared-bus", "L", "o", "g", "G",
    "inter-dimension-scheduling", "intra-dimension-scheduling",
)  # fmt: skip
_ONLY = {"roofline-enabled": 0, "replay-only": 0, "track-local-mem": 0, "model-shared-bus": 0}
"""Switches that change times, and the one way in which they are simulated."""


def export_machine(topology: Topology, *, times: CalibratedTimes | None = None) -> Machine:
    """The machine of a TPU slice as an export says it, in ns: one ring a side; where all sides close, both ways."""
    machine = replace(astra_sim_machine(topology.name, times=times), endpoint_ns=ENDPOINT)
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
    memory = machine.memory_bytes_per_ns
    return replace(machine, dims=dims, memory_bytes_per_ns=memory and memory / factor)


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


def read_settings(folder: Path, *, num_ranks: int) -> Machine:
    """The machine of a folder's `network.yml` and `system.json`, in the trace's ticks; queues from `run.txt`.

    `OSError` where a file is not there; `TimingError`, one line that names the file and its key, where it is none.
    """
    network, system = folder / "network.yml", folder / "system.json"
    with _naming(network):
        dims = _read_network(network)
        if prod(dim.size for dim in dims) != num_ranks:
            sizes = " x ".join(str(dim.size) for dim in dims)
            raise TimingError(f"npus_count: {sizes} ranks, and the trace has {num_ranks:,}")
    with _naming(system):
        return _read_system(read_json(system), dims, queues=_read_queues(folder / "run.txt"))


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except MeshError as error:
        raise TimingError(f"{path} is {error}") from None
    except TimingError as error:
        raise TimingError(f"{path}: {error}") from None


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
        try:
            dims.append(Dim(kind=parse_kind(str(kind)), size=size, bytes_per_ns=rate * GIB / 1e9, latency_ns=hop))
        except TimingError as error:
            raise TimingError(f"dim {index}: {error}") from None
    return tuple(dims)


def _read_system(table: object, dims: tuple[Dim, ...], *, queues: int) -> Machine:
    if not isinstance(table, dict):
        raise TimingError("a table of settings was expected")
    for key in table:
        if key not in _SYSTEM and not str(key).endswith("-implementation"):
            raise TimingError(f"{quote(key)}: not simulated; known are {', '.join(_SYSTEM)}, and …-implementation")
    for key, allowed in _ONLY.items():
        if table.get(key, allowed) != allowed:
            raise TimingError(f"{key}: only {allowed} is simulated, not {quote(table[key])}")
    policy = table.get("scheduling-policy")
    if policy not in ("FIFO", "LIFO", "EXPLICIT"):
        raise TimingError(f"scheduling-policy: FIFO, LIFO or EXPLICIT, not {quote(policy)}")
    optimization = table.get("collective-optimization")  # not set, ASTRA-sim takes either
    multi = {word: name for name, word in _OPTIMIZATIONS.items()}.get(str(optimization))
    if multi is None:
        raise TimingError(f"collective-optimization: localBWAware or baseline, not {quote(optimization)}")
    if "local-mem-bw" not in table:
        raise TimingError("local-mem-bw: GB/s of a rank's memory; without it reductions have no length")
    return Machine(
        dims=dims,
        algorithms=_read_algorithms(table),
        multi=multi,
        chunks=_whole(table, "preferred-dataset-splits", None),
        active_chunks=_whole(table, "active-chunks-per-dimension", 1),
        queues=queues,
        memory_bytes_per_ns=_number("local-mem-bw", table["local-mem-bw"]),
        endpoint_ns=_whole(table, "endpoint-delay", ENDPOINT),
    )


def _read_algorithms(table: Mapping[str, object]) -> Algorithms:
    by_kind = {}
    for kind in KINDS:
        words = table.get(f"{kind}-implementation")
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise TimingError(f"{kind}-implementation: a list of words, one for each dim, not {quote(words)}")
        try:
            by_kind[kind] = tuple(map(parse_algorithm, words))
        except TimingError as error:
            raise TimingError(f"{kind}-implementation: {error}") from None
    all_reduce, all_gather, reduce_scatter, all_to_all = (by_kind[kind] for kind in KINDS)
    return Algorithms(
        all_reduce=all_reduce, all_gather=all_gather, reduce_scatter=reduce_scatter, all_to_all=all_to_all
    )  # fmt: skip


def _read_queues(path: Path) -> int:
    """`--num-queues-per-dim` of the command line; 1 without one."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")[:YAML_BYTES]
    except FileNotFoundError:
        return 1
    match = re.search(r"--num-queues-per-dim[= ](\d{1,6})\b", text, re.ASCII)
    return int(match[1]) if match else 1


def _whole(table: Mapping[str, object], key: str, default: int | None) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TimingError(f"{key}: a whole number, not {quote(value)}")
    return value


def _number(key: str, value: object) -> float:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        return float(value)
    except (ValueError, OverflowError):
        raise TimingError(f"{key}: a number, not {quote(value)}") from None
