"""A process with JAX in it: `python toy_jax.py OUTDIR` lowers a small sharded MLP over 8 and over 2 devices.

Writes program8.mlirbc, program2.mlirbc, options8.json, options2.json, too_large.mlirbc, loop2.mlirbc and loop64.mlirbc
(matmuls in a scan), by_hand.mlirbc (a shard_map with two sums, one after the other), and jax.hlo: what
`lowered.compile()` of JAX itself gives for the 8 devices of a v5e:2x4 in an order that is not their own.
"""

import io
import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

ORDER = [0, 2, 4, 6, 7, 5, 3, 1]


def lower_matmul(mesh: Mesh, *, width: int = 512):
    def put(x, *spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))

    def mlp(x, up, down):
        with jax.named_scope("layer.mlp.up"):
            hidden = put(jax.nn.silu(x @ up), "dp", "tp")
        with jax.named_scope("layer.mlp.down"):
            return put(hidden @ down, "dp", None)

    def shape(*sizes, spec):
        return jax.ShapeDtypeStruct(sizes, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))

    arguments = (
        shape(256, width, spec=("dp", None)),
        shape(width, 4 * width, spec=(None, "tp")),
        shape(4 * width, width, spec=("tp", None)),
    )
    return jax.jit(mlp, out_shardings=NamedSharding(mesh, P("dp", None))).lower(*arguments)


def lower_loop(mesh: Mesh, times: int):
    def matmuls(x, y, w):
        return jax.lax.scan(lambda carry, _: (carry @ w, None), x + y, None, length=times)[0]

    square = jax.ShapeDtypeStruct((512, 512), jnp.bfloat16, sharding=NamedSharding(mesh, P()))
    return jax.jit(matmuls, out_shardings=NamedSharding(mesh, P())).lower(square, square, square)


def lower_by_hand(mesh: Mesh):
    def block(x, up, down):
        return jax.lax.psum(jax.nn.silu(x @ up) @ down, "tp")

    def step(x, up, down):
        with jax.named_scope("layer.attention.out"):
            x = block(x, up, down)
        with jax.named_scope("layer.mlp.down"):
            return block(x, up, down)

    specs = (P("dp"), P(None, "tp"), P("tp"))
    shapes = ((256, 512), (512, 2048), (2048, 512))
    arguments = [
        jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
        for shape, spec in zip(shapes, specs, strict=True)
    ]
    return jax.jit(jax.shard_map(step, mesh=mesh, in_specs=specs, out_specs=P("dp"))).lower(*arguments)


def bytecode(program) -> bytes:
    into = io.BytesIO()
    program.compiler_ir("stablehlo").operation.write_bytecode(into)
    return into.getvalue()


def main(out: Path) -> None:
    v5e = np.array(topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices)
    for devices, shape in ((v5e[ORDER], (2, 4)), (v5e[:2], (1, 2))):
        mesh = Mesh(devices.reshape(shape), ("dp", "tp"))
        program = lower_matmul(mesh)
        (out / f"program{devices.size}.mlirbc").write_bytes(bytecode(program))
        options = {
            "num_replicas": 1,
            "num_partitions": devices.size,
            "use_spmd_partitioning": True,
            "use_shardy_partitioner": True,
            "allow_spmd_sharding_propagation_to_parameters": [False] * 3,
            "allow_spmd_sharding_propagation_to_output": [False],
        }
        (out / f"options{devices.size}.json").write_text(json.dumps(options))
        if devices.size == 8:
            (out / "jax.hlo").write_text(program.compile().as_text())
            for times in (2, 64):
                (out / f"loop{times}.mlirbc").write_bytes(bytecode(lower_loop(mesh, times)))
            (out / "by_hand.mlirbc").write_bytes(bytecode(lower_by_hand(mesh)))
            (out / "too_large.mlirbc").write_bytes(bytecode(lower_matmul(mesh, width=2**17)))


main(Path(sys.argv[1]))
