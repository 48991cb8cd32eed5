"""Whether a case fits the chips' memory: its weights and caches alone, a lower bound on what a program needs."""

from dataclasses import replace
from itertools import product
from math import prod

from meshes.case import Case
from meshes.errors import MeshError
from meshes.files import Plan
from meshes.generations import Generation
from meshes.spec import MeshSpec
from meshes.topology import Topology
from meshes.weights import weights


def resident_bytes(case: Case) -> int:
    """Bytes that the weights and the cache take on one device, without activations or padding."""
    return weight_bytes(case) + cache_bytes(case)


def weight_bytes(case: Case) -> int:
    """Of one device: its part of every weight."""
    sizes, split = case.mesh.axes, case.plan.rules

    def ways(dims: str) -> int:
        return prod(sizes[axis] for dim in dims.split() if split[dim] for axis in str(split[dim]).split(","))

    return sum(prod(spec.shape) // ways(spec.dims) for spec in weights(case)) * case.dtype_bytes


def cache_bytes(case: Case) -> int:
    """Of one device: keys and values of its sequences, its positions, its heads, the layers of its stage."""
    model, mesh = case.model, case.mesh
    heads = case.kv_heads // (mesh.tp if case.plan.rules["kv_heads"] else 1)
    positions = case.batch // (mesh.dp * mesh.ep) * case.cache_length // mesh.cp
    return 2 * (model.layers // mesh.pp) * positions * heads * model.head_dim * case.dtype_bytes


def check_fits(case: Case) -> None:
    """Refuse a case whose weights and caches alone are larger than a device's memory."""
    needed, there = resident_bytes(case), case.topology.generation.hbm_bytes_per_device
    if needed > there:
        raise MeshError(does_not_fit(case, needed=needed, there=there))


def does_not_fit(case: Case, *, needed: int, there: int) -> str:
    """One line: bytes needed, bytes there, the smallest mesh that fits."""
    smallest = smallest_fit(case, spare=max(needed - resident_bytes(case), 0))
    sure = "fits" if needed <= resident_bytes(case) else "should fit, with its activations split as evenly,"
    advice = f"the smallest mesh that {sure} is {smallest}" if smallest else "no single slice of this generation fits"
    return (
        f"{case.model.name} on {case.mesh.name} needs {needed / 1e9:.1f} GB on each device, but a {case.topology.name} "
        f"device has {there / 1e9:.1f} GB; {advice}"
    )


def smallest_fit(case: Case, *, spare: int = 0) -> str | None:
    """The mesh of fewest devices, tensor parallelism first, on one slice of the same generation.

    `spare` bytes are needed beside weights and cache on a device of the case's own mesh; on another mesh they are
    taken to be in proportion to the number of its devices.
    """
    row = case.topology.generation
    for topology in _slices(row):
        fits = [mesh for mesh in _meshes(case, topology.num_devices) if _resident(case, mesh, topology, row, spare)]
        if fits:
            return f"{max(fits, key=lambda mesh: (mesh.tp, -mesh.dp)).name}@{topology.name}"
    return None


def _slices(row: Generation) -> list[Topology]:
    cubes = [f"{x}x{y}x{z}" for x, y, z in product((4, 8, 16), repeat=3) if x <= y <= z] if row.torus_dims == 3 else []
    names = sorted({*row.slices, *cubes}, key=lambda name: prod(map(int, name.split("x"))))
    return [Topology.parse(f"{row.name}:{name}") for name in names]


def _meshes(case: Case, num_devices: int) -> list[MeshSpec]:
    """Every dp·pp·tp of this many devices."""
    sizes = [n for n in range(1, num_devices + 1) if num_devices % n == 0]
    return [
        MeshSpec(dp=dp, pp=num_devices // dp // tp, tp=tp)
        for dp, tp in product(sizes, repeat=2)
        if num_devices % (dp * tp) == 0
    ]


def _resident(case: Case, mesh: MeshSpec, topology: Topology, row: Generation, spare: int) -> bool:
    """Whether the case can be laid on this mesh, and fits with its share of `spare` bytes beside it."""
    try:
        plan = Plan(mesh, topology, case.plan.order, case.plan.rules)
        moved = replace(case, plan=plan, microbatches=4 if mesh.pp > 1 and case.batch % (4 * mesh.dp) == 0 else 1)
    except MeshError:
        return False
    beside = spare * case.mesh.num_devices // mesh.num_devices
    return resident_bytes(moved) + beside <= row.hbm_bytes_per_device
