"""Which chip each logical device is: the axis that talks most sits on neighbours.

Programs number devices row-major over the axes and never see chips; only the compile does, as its
device assignment.  One function for every arm, so that both put the same coordinate on the same chip.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from meshes.errors import MeshError
from meshes.files import Plan
from meshes.topology import Place

Factors = tuple[int, ...]


def chips(plan: Plan) -> tuple[Place, ...]:
    """The place of logical device 0, 1, …  Raises `MeshError` where axes cannot be laid on the torus.

    Slices take the outermost axes.  Within a slice each axis, innermost of `plan.order` first, takes the
    factors of the torus's sides that are left, whole sides before parts of sides; its members follow a
    snake through them, so that consecutive members are neighbours.
    """
    sizes = {axis: size for axis, size in plan.mesh.axes.items()}
    outer = _outer_axes(plan)
    inner = {axis: 1 if axis in outer else size for axis, size in sizes.items()}
    sides = (*plan.topology.sides, plan.topology.generation.devices)
    taken = _take(inner, sides, order=plan.order)
    return tuple(_place(where, plan=plan, outer=outer, taken=taken) for where in plan.mesh.coordinates)


def _outer_axes(plan: Plan) -> tuple[str, ...]:
    """The outermost axes whose product is the number of slices."""
    slices, outer, done = plan.topology.slices, [], 1
    for axis, size in plan.mesh.axes.items():
        if done == slices:
            break
        outer.append(axis)
        done *= size
    if done != slices:
        raise MeshError(
            f"mesh {plan.mesh.name} cannot be laid over {slices} slices: its outermost axes multiply to {done}; "
            f"choose sizes whose outermost product is {slices}, like 'dp{slices}tp{plan.mesh.num_devices // slices}'"
        )
    return tuple(outer)


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
    where: Mapping[str, int], *, plan: Plan, outer: tuple[str, ...], taken: dict[str, tuple[Factors, Factors]]
) -> Place:
    slice_index = 0
    for axis in outer:
        slice_index = slice_index * plan.mesh.axes[axis] + where[axis]
    at = [0, 0, 0, 0]
    for axis, (factors, stride) in taken.items():
        for side, step in enumerate(_snake(0 if axis in outer else where[axis], factors)):
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
