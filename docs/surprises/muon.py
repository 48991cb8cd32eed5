"""Muon's iterations gather every split weight, five times a step (google-deepmind/optax#1660).

Symptom: Muon optimizer slow; Newton-Schulz; orthogonalize sharded weights; all-gather or all-reduce in the update

Asked: five Newton–Schulz iterations on eight momenta of `[1024, 4096]`, whose rows are split over `fsdp`, as their
weights are.

Why: an optimizer like Adam works on each number alone.  Muon multiplies a matrix by its own transpose, and by the
result: each iteration needs all of it.  So `x` and `x @ x.T` are gathered in every iteration.  (Split by columns it is
the products that are summed.)  AI-Hypercomputer/maxtext#3988 and marin-community/marin#6493 met this with experts.

Instead: whole matrices.  As many as there are devices go to one device each and back, by two exchanges, and the
iterations send nothing.
"""

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = {"fsdp": 8}
MESH = AbstractMesh((8,), ("fsdp",))
ROWS = NamedSharding(MESH, P(None, "fsdp"))


def lowered(function):
    momenta = jax.ShapeDtypeStruct((8, 1024, 4096), "float32", sharding=ROWS)
    return jax.jit(function, out_shardings=ROWS).trace(momenta).lower(lowering_platforms=("tpu",))


def iteration(x, _):
    gram = x @ x.T
    return 3.4445 * x + (2.0315 * gram @ gram - 4.775 * gram) @ x, None


def orthogonal(momentum):
    return jax.lax.scan(iteration, momentum / jnp.linalg.norm(momentum), length=5)[0]


def each_whole(momenta):
    return jax.lax.with_sharding_constraint(momenta, NamedSharding(MESH, P("fsdp")))


def surprising():
    return lowered(jax.vmap(orthogonal))


def instead():
    return lowered(lambda momenta: each_whole(jax.vmap(orthogonal)(each_whole(momenta))))


if __name__ == "__main__":
    from compare import collectives

    for made in (surprising, instead):
        print(f"{made.__name__}:", collectives(made(), axes=AXES, topology="v5e:2x4"), sep="\n")
