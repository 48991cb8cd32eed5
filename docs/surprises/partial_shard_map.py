"""A permute in a `shard_map` over one of two axes gathers over the other first (openxla/xla#20808).

Asked: `ppermute` over `data` in a `shard_map` that leaves `model` to the compiler (`axis_names={"data"}`).  The columns
are split over `model`, before and after.

Why: this is GSPMD's doing, which JAX uses no more unless told to (`jax_use_shardy_partitioner=False`).  In a region
that is half by hand it carries no split from the border to the permute, and takes the operand for whole over `model`:
it gathers where the `shard_map` begins, sends all of it at the line of the `ppermute`, four times what is needed, and
cuts.  In the report, of 2024, this was so even where the split was said inside; that part is gone (`instead_pinned`).

Instead: Shardy, which is JAX's default now, sends each device's part.  Under GSPMD: name both axes in the `shard_map`
(`instead_both_axes`), or pin the operand inside of it (`instead_pinned`).

Symptom: all-gather before a `ppermute`; partial-auto `shard_map` gathers; collective-permute sends too much
"""

import jax
from jax.lax import ppermute, with_sharding_constraint
from jax.sharding import AbstractMesh, NamedSharding, get_abstract_mesh
from jax.sharding import PartitionSpec as P

AXES = {"data": 2, "model": 4}
MESH = AbstractMesh(tuple(AXES.values()), tuple(AXES))
SPLIT = NamedSharding(MESH, P("data", "model"))


def lowered(body, *axes, shardy=False):
    """axes: those of the `shard_map`, one for each dim; it leaves the others to the compiler."""
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        specs = {"in_specs": P(*axes), "out_specs": P(*axes)}
        mapped = jax.shard_map(body, mesh=MESH, axis_names=set(axes), **specs)
        rows = jax.ShapeDtypeStruct((64, 4096), "bfloat16", sharding=SPLIT)
        return jax.jit(mapped, out_shardings=SPLIT).trace(rows).lower(lowering_platforms=("tpu",))
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)


def swap(rows):
    return ppermute(rows, "data", [(0, 1), (1, 0)])


def surprising():
    return lowered(swap, "data")


def instead():
    return lowered(swap, "data", shardy=True)


def instead_both_axes():
    return lowered(swap, "data", "model")


def instead_pinned():
    def pinned(rows):
        return swap(with_sharding_constraint(rows, NamedSharding(get_abstract_mesh(), P(None, "model"))))

    return lowered(pinned, "data")


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead, instead_both_axes, instead_pinned):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
