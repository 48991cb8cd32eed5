"""The same machine with other numbers: scaled by a word, or set by its place in the machine's file."""

import re
from collections.abc import Mapping
from dataclasses import replace

from compare.network.machines.custom import collect_custom, custom_table
from compare.network.machines.kinds import BANDWIDTH, DCN, ICI, KINDS, LATENCY, LAUNCH, MEMORY, SCALES, SWITCH
from compare.network.machines.machine import Algorithm, Machine
from compare.network.machines.machine_file import parse_machine
from compare.network.machines.words import choose_algorithm
from compare.timeline.errors import TimingError
from meshes.process.one_line import quote


def scale_machine(machine: Machine, word: str, factor: float) -> Machine:
    """Raises `TimingError` for an unknown word, or a factor that the machine cannot have."""
    if not 0 < factor <= 1e9:
        raise TimingError(f"scale: {word} times a number more than 0 and at most 1e9, not {factor:g}")
    if word in (BANDWIDTH, ICI, DCN):
        touched = [word == BANDWIDTH or (dim.kind == SWITCH) == (word == DCN) for dim in machine.dims]
        if not any(touched):
            raise TimingError(f"scale: {machine.name} has no dims that {word} is the bandwidth of")
        dims = tuple(
            replace(dim, bytes_per_ns=dim.bytes_per_ns * factor) if is_touched else dim
            for dim, is_touched in zip(machine.dims, touched, strict=True)
        )
        return replace(machine, dims=dims)
    if word == LATENCY:
        dims = tuple(replace(dim, latency_ns=dim.latency_ns * factor) for dim in machine.dims)
        return replace(machine, dims=dims, launch_ns=machine.launch_ns * factor)
    if word == LAUNCH:
        return replace(machine, launch_ns=machine.launch_ns * factor)
    if word == MEMORY:
        if machine.memory_bytes_per_ns is None:
            raise TimingError(f"scale: reductions cost nothing on {machine.name}: it gives no memory")
        return replace(machine, memory_bytes_per_ns=machine.memory_bytes_per_ns * factor)
    raise TimingError(f"scale: unknown {quote(word)}; known are {', '.join(SCALES)}")


def set_value(machine: Machine, path: str, value: str) -> Machine:
    """`dims.1.bandwidth`, `180`: as if that stood in the machine's file.  Raises `TimingError`, which names the key."""
    table = machine_table(machine)
    *parts, last = path.split(".")
    if len(parts) == 2 and parts[0] == "dims" and last == "algorithm" and re.fullmatch(r"\d", parts[1], re.ASCII):
        words = [choose_algorithm(value, machine)]
        if int(parts[1]) >= len(machine.dims):
            raise TimingError(f"set: {machine.name} has no {quote(path)}; it has {len(machine.dims)} dims")
        for kind in KINDS:
            of_dims = list(machine.algorithms.of(kind))
            of_dims[int(parts[1]) : int(parts[1]) + 1] = words
            machine = set_algorithms(machine, kind, tuple(of_dims))
        return machine
    place: object = table
    for part in parts:
        if isinstance(place, list) and re.fullmatch(r"\d{1,3}", part, re.ASCII) and int(part) < len(place):
            place = place[int(part)]
        elif isinstance(place, dict) and isinstance(place.get(part), dict | list):
            place = place[part]
        else:
            raise TimingError(
                f"set: {machine.name} has no {quote(path)}; write a key of its file, like dims.0.bandwidth"
            )
    if not isinstance(place, dict):
        raise TimingError(f"set: {quote(path)} is no key of a machine; write one like dims.0.bandwidth")
    place[last] = _value(value)
    return parse_machine(table, name=machine.name)


def set_algorithms(machine: Machine, kind: str, algorithms: tuple[Algorithm, ...]) -> Machine:
    """Another algorithm for one kind: one for each dim, or one for all; no longer the compiler's choice."""
    if kind not in KINDS:
        raise TimingError(f"algorithm: unknown collective {quote(kind)}; known are {', '.join(KINDS)}")
    if len(algorithms) == 1:
        algorithms *= len(machine.dims)
    return replace(
        machine,
        algorithms=machine.algorithms.replace({kind: algorithms}),
        compiled=tuple(each for each in machine.compiled if each != kind),
    )


def machine_table(machine: Machine) -> dict[str, object]:
    """The machine as its file has it; `parse_machine` reads it again."""
    table: dict[str, object] = {
        "name": machine.name,
        "multi": machine.multi,
        "compiled": list(machine.compiled),
        "chunks": machine.chunks,
        "active-chunks": machine.active_chunks,
        "queues": machine.queues,
        "policy": machine.policy,
        "links": machine.links,
        "launch": machine.launch_ns,
        "dims": [
            {"kind": dim.kind, "size": dim.size, "bandwidth": dim.bytes_per_ns, "latency": dim.latency_ns}
            for dim in machine.dims
        ],
        "algorithms": {kind: [each.text for each in machine.algorithms.of(kind)] for kind in KINDS},
    }
    custom = {name: custom_table(each) for name, each in collect_custom(machine).items()}
    optional: Mapping[str, object] = {
        "memory": machine.memory_bytes_per_ns,
        "endpoint": machine.endpoint_ns,
        "peak": machine.peak_flops_per_ns and machine.peak_flops_per_ns / 1000,
        "in-flight": machine.in_flight,
        "custom": custom or None,
    }
    return table | {key: value for key, value in optional.items() if value is not None}


def _value(word: str) -> object:
    if re.fullmatch(r"-?\d{1,18}", word, re.ASCII):
        return int(word)
    try:
        return float(word)
    except ValueError:
        return word
