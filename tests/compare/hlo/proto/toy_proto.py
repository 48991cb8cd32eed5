"""A process with JAX in it: `python toy_proto.py OUTDIR` compiles programs; NAME.hlo is XLA's text, NAME.pb its proto.

cpu: a loop with a psum over half of 8 CPU devices and a branch that only some of them take.  tpu: a small sharded MLP
for the 8 devices of a v5e:2x4 in an order that is not their own.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

ORDER = [0, 2, 4, 6, 7, 5, 3, 1]


def loop_and_branch(mesh: Mesh):
    def stage(x):
        def body(count, carry):
            gathered = jax.lax.psum(carry * 0.5, "tp")
            return jax.lax.cond(
                jax.lax.axis_index("dp") == count % 2, lambda y: jax.lax.pmax(y, "tp"), jnp.sin, gathered
            )

        return jax.lax.fori_loop(0, 6, body, x)

    mapped = jax.shard_map(stage, mesh=mesh, in_specs=P("dp", "tp"), out_specs=P("dp", "tp"), check_vma=False)
    return jax.jit(mapped).lower(jax.ShapeDtypeStruct((16, 64), jnp.float32))


def mlp(mesh: Mesh):
    def apply(x, up, down):
        with jax.named_scope("layer.mlp.down"):
            return jax.lax.with_sharding_constraint(jnp.tanh(x @ up) @ down, NamedSharding(mesh, P("dp", None)))

    shapes = (((64, 256), ("dp", None)), ((256, 1024), (None, "tp")), ((1024, 256), ("tp", None)))
    arguments = [
        jax.ShapeDtypeStruct(dims, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec))) for dims, spec in shapes
    ]
    return jax.jit(apply, donate_argnums=0).lower(*arguments)


def main(out: Path) -> None:
    cpus = np.array(jax.devices("cpu")).reshape(2, 4)
    tpus = np.array(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices)[ORDER].reshape(2, 4)
    lowered = {"cpu": loop_and_branch(Mesh(cpus, ("dp", "tp"))), "tpu": mlp(Mesh(tpus, ("dp", "tp")))}
    for name, program in lowered.items():
        compiled = program.compile()
        (out / f"{name}.hlo").write_text(compiled.as_text())
        module = compiled.runtime_executable().hlo_modules()[0]
        (out / f"{name}.pb").write_bytes(module.as_serialized_hlo_module_proto())


main(Path(sys.argv[1]))
