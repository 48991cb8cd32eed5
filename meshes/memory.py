"""Whether a case fits the chips' memory: its weights and caches alone, a lower bound on what a program needs."""

from contextlib import suppress
from dataclasses import replace
from itertools import product
from math import prod

from meshes.case import Case, default_microbatches
from meshes.devices.chip import Chip
from meshes.devices.mesh_spec import MeshSpec
from meshes.devices.topology import Topology
from meshes.mesh_argument import Plan
from meshes.process.errors import MeshError
from meshes.weights import WeightSpec, weights


def resident_bytes(case: Case) -> int:
    """Bytes that the weights and the cache take on one device, without activations or padding."""
    return weight_bytes(case) + cache_bytes(case)


def weight_bytes(case: Case) -> int:
    """Of one device: its part of every weight."""
    return sum(shard_bytes(spec, case=case) for spec in weights(case))


def shard_bytes(spec: WeightSpec, *, case: Case) -> int:
    """One device's part of a weight."""
    split = [case.plan.rules[dim] for dim in spec.dims.split()]
    ways = prod(case.mesh.axes[axis] for axes in split if axes for axis in axes.split(","))
    return prod(spec.shape) // ways * case.dtype_bytes


def cache_bytes(case: Case) -> int:
    """Of one device: keys and values of its sequences, its positions, its heads, the layers of its stage."""
    model, mesh = case.model, case.mesh
    heads = case.kv_heads // (mesh.tp if case.plan.rules["kv_heads"] else 1)
    positions = case.batch // (mesh.dp * mesh.ep) * case.cache_length // mesh.cp
    return 2 * (model.layers // mesh.pp) * positions * heads * model.head_dim * case.dtype_bytes


def check_fits(case: Case) -> None:
    """Refuse a case whose weights and caches alone are larger than a device's memory."""
    needed, capacity = resident_bytes(case), case.topology.generation.hbm_bytes_per_device
    if needed > capacity:
        raise MeshError(explain_misfit(case, needed=needed, capacity=capacity))


def explain_misfit(case: Case, *, needed: int, capacity: int) -> str:
    """One line: bytes needed, bytes of the device, the smallest mesh that fits."""
    smallest = smallest_fit(case, spare=max(needed - resident_bytes(case), 0), capacity=capacity)
    sure = "fits" if needed <= resident_bytes(case) else "should fit, if activations split as evenly,"
    advice = f"the smallest mesh that {sure} is {smallest}" if smallest else "no single slice of this generation fits"
    return (
        f"{case.model.name} on {case.mesh.name} needs {needed / 1e9:.1f} GB on each device, but a {case.topology.name} "
        f"device has {capacity / 1e9:.1f} GB; {advice}"
    )


def is_misfit(reason: str) -> bool:
    """Whether a reason is one of `explain_misfit`, repeated in a report or a sweep."""
    return " GB on each device, but a " in reason


def smallest_fit(case: Case, *, spare: int = 0, capacity: int | None = None) -> str | None:
    """The mesh of fewest devices on one slice of the same generation: few copies of KV heads, much `tp`, little `dp`.

    `cp` and `ep` are kept.  `spare` bytes are needed beside weights and cache on a device of the case's own mesh; on
    another mesh they are taken to be in proportion to the number of its devices.  `capacity`: bytes that the compiler
    gives a program, a little less than a device has.
    """
    row = case.topology.generation
    most = row.hbm_bytes_per_device if capacity is None else capacity
    for topology in _slices(row):
        fits = [moved for moved in _moved(case, topology) if _resident(moved, case, spare) <= most]
        if fits:
            best = max(fits, key=lambda moved: (-moved.kv_heads, moved.mesh.tp, -moved.mesh.dp))
            return f"{best.plan.name}@{topology.name}"
    return None


def _slices(row: Chip) -> list[Topology]:
    cubes = [f"{x}x{y}x{z}" for x, y, z in product((4, 8, 16), repeat=3) if x <= y <= z] if row.torus_dims == 3 else []
    names = sorted({*row.slices, *cubes}, key=lambda name: prod(map(int, name.split("x"))))
    return [Topology.parse(f"{row.name}:{name}") for name in names]


def _moved(case: Case, topology: Topology) -> list[Case]:
    """The case on every dp·pp·tp of this slice that it can be laid on."""
    kept = case.mesh.cp * case.mesh.ep
    sizes = [n for n in range(1, topology.num_devices + 1) if topology.num_devices % (kept * n) == 0]
    cases = []
    for dp, tp in product(sizes, repeat=2):
        pp, rest = divmod(topology.num_devices, kept * dp * tp)
        if rest == 0:
            mesh = MeshSpec(dp=dp, pp=pp, cp=case.mesh.cp, ep=case.mesh.ep, tp=tp)
            usual = default_microbatches(mesh)
            microbatches = usual if case.batch % (usual * dp * mesh.ep) == 0 else 1
            with suppress(MeshError):
                plan = Plan(mesh, topology, case.plan.order, case.plan.rules)
                cases.append(replace(case, plan=plan, microbatches=microbatches))
    return cases


def _resident(moved: Case, case: Case, spare: int) -> int:
    """Bytes on a device of the mesh that the case was moved to, with its share of `spare` bytes beside."""
    return resident_bytes(moved) + spare * case.mesh.num_devices // moved.mesh.num_devices
