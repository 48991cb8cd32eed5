"""Record a small program of JAX on 8 CPU devices: `python make_jax.py FOLDER`.

Over data=2, tensor=4: a loop of three layers with an all-reduce over tensor in each, then one over data and a permute.
"""

import os
import sys

os.environ |= {
    "JAX_NUM_CPU_DEVICES": "8",
    "JAX_PLATFORMS": "cpu",
    "JAX_HLO_SOURCE_FILE_CANONICALIZATION_REGEX": ".*/",  # no folder of this machine in the program
}

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "tensor"), axis_types=(AxisType.Auto,) * 2)
weights = jax.device_put(jnp.ones((3, 64, 64)), NamedSharding(mesh, P(None, "tensor", None)))
batch = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P("data", "tensor")))


@jax.jit
def program(batch, weights):
    split = NamedSharding(mesh, P("data", "tensor"))

    def layer(x, w):
        return jax.lax.with_sharding_constraint(x @ w * 0.01, split), None

    x, _ = jax.lax.scan(layer, batch, weights)
    turn = jax.shard_map(
        lambda own: jax.lax.ppermute(own, "data", [(0, 1), (1, 0)]),
        mesh=mesh,
        in_specs=P("data", "tensor"),
        out_specs=P("data", "tensor"),
    )
    return turn(x - x.sum(axis=0))


options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0
program(batch, weights).block_until_ready()
with jax.profiler.trace(sys.argv[1], profiler_options=options):
    for number in range(3):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            program(batch, weights).block_until_ready()
