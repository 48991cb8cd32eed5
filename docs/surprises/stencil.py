"""Each step of a stencil asks the neighbours for their edge (EnzymeAD/Enzyme-JAX#2326).

Symptom: finite differences on a sharded grid; halo exchange, ghost cells; many collective-permutes; `.at[1:-1]` gathers

Asked: four steps of diffusion along a dim of 8,192 that is split over `x`; the two ends stay as they are.

Why: a difference of neighbours needs one row of the device before, and one of the device after.  Each step is two
messages of a row, and waits for them, eight in a row.  Written as `u.at[1:-1].add(…)` it is far worse
(`surprising_interior`): the update has 8,190 rows, which don't divide among eight devices, and they are gathered.

Instead: fetch four rows from both sides, once, and compute in these what the neighbour computes as well.  In
`shard_map`, since the partitioner does not do that.  If that is too much: a mask for the ends, over all rows
(`surprising`), and never a slice of a split dim.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"x": 8}
MESH = AbstractMesh((8,), ("x",))
SPLIT = NamedSharding(MESH, P("x"))
ROWS, STEPS = 8192, 4


def lowered(function):
    grid = jax.ShapeDtypeStruct((ROWS, 1024), "float32", sharding=SPLIT)
    return jax.jit(function, out_shardings=SPLIT).trace(grid).lower(lowering_platforms=("tpu",))


def diffuse(grid, at):
    inside = ((at > 0) & (at < ROWS - 1))[:, None]
    for _ in range(STEPS):
        change = jnp.roll(grid, 1, 0) + jnp.roll(grid, -1, 0) - 2 * grid
        grid = grid + 0.1 * jnp.where(inside, change, 0)
    return grid


def diffuse_interior(grid):
    for _ in range(STEPS):
        grid = grid.at[1:-1].add(0.1 * (grid[2:] + grid[:-2] - 2 * grid[1:-1]))
    return grid


def with_edges(part):
    """Of one device: its part, and as many rows of its neighbours as there are steps."""
    before = jax.lax.ppermute(part[-STEPS:], "x", [(i, i + 1) for i in range(7)])
    after = jax.lax.ppermute(part[:STEPS], "x", [(i + 1, i) for i in range(7)])
    wide = jnp.concatenate([before, part, after])
    at = jax.lax.axis_index("x") * len(part) - STEPS + jnp.arange(len(wide))
    return diffuse(wide, at)[STEPS:-STEPS]


def surprising():
    return lowered(lambda grid: diffuse(grid, jnp.arange(ROWS)))


def surprising_interior():
    return lowered(diffuse_interior)


def instead():
    return lowered(jax.shard_map(with_edges, mesh=MESH, in_specs=P("x"), out_specs=P("x")))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, surprising_interior, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
