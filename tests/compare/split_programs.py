"""JAX functions on a mesh of eight, compiled for the TPU."""

from compare import collectives


def compile_split(step, arrays, out, **options):
    """The collectives of what `lower_split` lowers; options: of `collectives`."""
    return collectives(lower_split(step, arrays, out), topology="v5e:2x4", **options)


def lower_split(step, arrays, out):
    """A JAX function on dp2tp4: bf16 arrays as (shape, how its dims are split), and how the result is.

    out: of several results, a list.
    """
    import jax
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((2, 4), ("dp", "tp"))

    def split(dims):
        return NamedSharding(mesh, PartitionSpec(*dims))

    given = [jax.ShapeDtypeStruct(shape, "bfloat16", sharding=split(dims)) for shape, dims in arrays]
    results = tuple(map(split, out)) if isinstance(out, list) else split(out)
    return jax.jit(step, out_shardings=results).trace(*given).lower(lowering_platforms=("tpu",))
