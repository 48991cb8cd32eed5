"""Device assignment: which chip each logical device is; the axis that sends most lies on neighbours.

Programs number devices row-major over the axes and never see chips; only the compile does, as its
device assignment.  One function for every arm, so that both put the same coordinate on the same chip.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from meshes.devices.topology import Place
from meshes.mesh_argument import Plan
from meshes.process.errors import MeshError

Factors = tuple[int, ...]


def assign_chips(plan: Plan) -> tuple[Place, ...]:
    """The place of logical device 0, 1, …  Raises `MeshError` where axes cannot be laid on the torus.

    Slices take the outermost axes of `plan.order`, the last of them perhaps in part (see `crossing_axes`).  Within a
    slice each axis, innermost first, takes the factors of the torus's sides that are left, whole sides before parts of
    sides; its members follow a snake through them, so that consecutive members are neighbours.
    """
    over = crossing_axes(plan)
    inner = {axis: size // over.get(axis, 1) for axis, size in plan.mesh.axes.items()}
    sides = (*plan.topology.sides, plan.topology.generation.devices)
    taken = _take(inner, sides, order=plan.order)
    return tuple(_place(where, over=over, inner=inner, taken=taken) for where in plan.mesh.coordinates)


def crossing_axes(plan: Plan) -> dict[str, int]:
    """Over how many slices each axis lies, outermost first, of those that lie over several; none on a single slice.

    An axis that is larger than the number of slices left to it is split in part: its outer factor lies over slices, its
    inner one on each of them, as in JAX's `create_hybrid_device_mesh`.  Raises `MeshError` where sizes do not divide.
    """
    left, over = plan.topology.slices, {}
    for axis in plan.order:
        size = plan.mesh.axes[axis]
        if left == 1:
            break
        if size % left and left % size:
            raise MeshError(_refusal(plan, axis, left))
        if size > 1:
            over[axis] = min(size, left)
            left //= over[axis]
    return over


def network_of(plan: Plan, axes: str) -> str:
    """The network of groups over these axes (comma-joined): `ici` in a slice, `dcn` between slices, or `ici+dcn`."""
    over, sizes = crossing_axes(plan), plan.mesh.split_axes
    named = [axis for axis in axes.split(",") if axis in sizes]
    if not any(axis in over for axis in named):
        return "ici"
    return "dcn" if all(over.get(axis, 1) == sizes[axis] for axis in named) else "ici+dcn"


def _refusal(plan: Plan, axis: str, slices: int) -> str:
    mesh, topology = plan.mesh, plan.topology
    each = mesh.num_devices // topology.slices
    return (
        f"mesh {mesh.name} cannot be laid over {topology.slices} slices: {axis}{mesh.axes[axis]} neither divides "
        f"{slices} nor is a multiple of it; choose sizes like 'dp{topology.slices}tp{each}', or put another axis "
        f"outermost with order = [...] in a spec file"
    )


def _take(sizes: dict[str, int], sides: Factors, *, order: Sequence[str]) -> dict[str, tuple[Factors, Factors]]:
    """For each axis its factor of each side, and the stride of that factor within the side."""
    left, stride = list(sides), [1] * len(sides)
    taken = {}
    for axis in reversed(order):
        factors = _choose(sizes[axis], tuple(left))
        if factors is None:
            raise MeshError(f"axis {axis}{sizes[axis]} cannot be laid on a torus with sides {tuple(left)} left")
        taken[axis] = (factors, tuple(stride))
        stride = [s * f for s, f in zip(stride, factors, strict=True)]
        left = [n // f for n, f in zip(left, factors, strict=True)]
    return taken


def _choose(size: int, sides: Factors) -> Factors | None:
    """Factors of the sides with this product: cores of a chip, then few sides, then whole sides, then the last."""
    divisors = [[f for f in range(1, side + 1) if side % f == 0] for side in sides]
    fits = [factors for factors in product(*divisors) if prod(factors) == size]
    if not fits:
        return None

    def cost(factors: Factors) -> tuple[int, int, int, Factors]:
        used = [at for at, f in enumerate(factors) if f > 1]
        parts = sum(factors[at] != sides[at] for at in used)
        return (-factors[-1], len(used), parts, tuple(reversed([-f for f in factors[:-1]])))

    return min(fits, key=cost)


def _place(
    where: Mapping[str, int],
    *,
    over: Mapping[str, int],
    inner: Mapping[str, int],
    taken: dict[str, tuple[Factors, Factors]],
) -> Place:
    slice_index = 0
    for axis, slices in over.items():
        slice_index = slice_index * slices + where[axis] // inner[axis]
    at = [0, 0, 0, 0]
    for axis, (factors, stride) in taken.items():
        for side, step in enumerate(_snake(where[axis] % inner[axis], factors)):
            at[side] += step * stride[side]
    return Place(slice_index, *at)


def _snake(member: int, factors: Factors) -> Factors:
    """The place of a member on a path that fills a block and moves by one step at a time."""
    digits = []
    for factor in factors[::-1]:  # the last side moves fastest
        digits.append(member % factor)
        member //= factor
    digits.reverse()
    turned: list[int] = []
    for at, (digit, factor) in enumerate(zip(digits, factors, strict=True)):
        # A row runs backwards when an odd number of steps was made on the sides outside it.
        backwards = sum(turned) % 2 if at else 0
        turned.append(factor - 1 - digit if backwards else digit)
    return tuple(turned)
