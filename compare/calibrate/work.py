"""The work of one call of a benchmark's program, counted from its compiled text as a report counts a step's."""

from collections.abc import Sequence
from dataclasses import dataclass

from compare.energy.coefficients import DCN
from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import Module, read
from compare.schedule.compiler_algorithm import read_algorithm
from compare.schedule.costs import estimated_cycles
from compare.schedule.exchange import LinkTraffic, route_collective
from compare.schedule.links import Torus
from compare.schedule.work.arithmetic import ArithmeticCounts
from compare.schedule.work.memory import MemoryTraffic, is_free
from meshes.devices.chip import Chip
from meshes.devices.generations import GENERATIONS
from meshes.devices.topology import Place


@dataclass(frozen=True, slots=True)
class Device:
    """What the benchmarks ran on."""

    generation: Chip | None
    """`None` for what is no TPU of the table."""
    places: tuple[Place, ...]
    """Of each device, empty where they are not known: every device then is a neighbour on one ring."""

    @classmethod
    def of(cls, kind: str, coords: Sequence[Sequence[int]]) -> "Device":
        """kind: JAX's `device_kind`; coords: x, y, z and core of each device."""
        chip = next((chip for chip in GENERATIONS.values() if kind in chip.device_kinds), None)
        places = tuple(Place(0, *each) for each in coords if len(each) == 4)
        return cls(chip, places if len(places) == len(coords) else ())

    def count(self, num_devices: int) -> dict[str, float]:
        """Columns `chips` and `devices` of the first so many devices: each core of a v4 or tpu7x is a device."""
        chips = len({place[:4] for place in self.places[:num_devices]}) or num_devices
        return {"chips": float(chips), "devices": float(num_devices)}

    def torus(self, num_devices: int) -> Torus:
        """Of the first so many devices."""
        if not self.places or self.generation is None:
            ring = tuple(Place(0, index, 0, 0, 0) for index in range(num_devices))
            return Torus(ring, (num_devices, 1, 1), (True, False, False))
        places = self.places[:num_devices]
        x, y, z = (1 + max(place[1 + side] for place in self.places) for side in range(3))
        wraps = self.generation.wraps((x, y, z)[: self.generation.torus_dims])
        return Torus(places, (x, y, z), wraps)


def count_work(text: str, device: Device) -> dict[str, float]:
    """Columns of `windows.WORK`, of one call: totals of all devices, and steps on the way of one; the devices."""
    module = read(text)
    rows = collectives(module, {})
    num_devices = max(module.num_devices or 1, 1)
    totals = _count_instructions(module, {row.name for row in rows}, device)
    work = {name: totals[name] * num_devices for name in ("matrix_flops", "vector_ops", "memory_bytes")}
    work |= {"estimated_s": totals["estimated_s"], **device.count(num_devices)}
    torus = device.torus(num_devices)
    steps = dict.fromkeys(("collectives", "hops", "link_bytes", "ici_byte_hops"), 0.0)
    for row in rows:
        if row.network == DCN:
            continue
        traffic = _route(row, torus)
        steps["collectives"] += 1
        steps["hops"] += float(traffic.hops.max(initial=0))
        steps["link_bytes"] += float(traffic.load.max(initial=0)) * row.payload_bytes
        steps["ici_byte_hops"] += float(traffic.hop_share.sum()) * row.payload_bytes
    return work | steps


def _route(row: Collective, torus: Torus) -> LinkTraffic:
    return route_collective(row.kind, row.mesh_groups, torus, read_algorithm(row.kind, row.text))


def _count_instructions(module: Module, communication: set[str], device: Device) -> dict[str, float]:
    """Of one device; estimates count for products alone, whose cycles are held against measurements."""
    arithmetic, memory = ArithmeticCounts(), MemoryTraffic()
    clock = device.generation.clock_hz if device.generation else None
    totals = dict.fromkeys(("matrix_flops", "vector_ops", "memory_bytes", "estimated_s"), 0.0)
    for item in module.entry:
        if item.name in communication or is_free(item) or item.opcode.endswith(("-start", "-done", "-update")):
            continue
        counts = arithmetic.of(item)
        totals["matrix_flops"] += counts.matrix_flops
        totals["vector_ops"] += counts.vector_ops
        totals["memory_bytes"] += memory.of(item)
        if clock and counts.matrix_flops:
            totals["estimated_s"] += (estimated_cycles(item) or 0) / clock
    return totals
