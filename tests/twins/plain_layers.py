"""One plain layer of a framework, compiled for a mesh: `python plain_layers.py jax|torchxla` prints its collectives."""

import json
import sys
from typing import Any

BATCH, SEQ, AXES = 8, 128, {"dp": 2, "tp": 4}


def lower_jax() -> Any:
    import jax
    from flax import nnx
    from jax.sharding import AbstractMesh, AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    from jax_impl.decoder.plain_layer import LlamaDecoderLayer
    from meshes.models import model

    jax.config.update("jax_platforms", "cpu")
    config = model("tiny")
    mesh = AbstractMesh(tuple(AXES.values()), tuple(AXES), axis_types=(AxisType.Auto,) * 2)
    with jax.sharding.use_abstract_mesh(mesh):
        layer = nnx.eval_shape(lambda: LlamaDecoderLayer(config, rngs=nnx.Rngs(0)))
        form, weights = nnx.split(layer)
        splits = nnx.get_partition_spec(weights)
        weights, splits = (
            jax.tree.leaves(each, is_leaf=lambda leaf: isinstance(leaf, P)) for each in (weights, splits)
        )
        arguments = [
            jax.ShapeDtypeStruct(weight.shape, weight.dtype, sharding=NamedSharding(mesh, split))
            for weight, split in zip(weights, splits, strict=True)
        ]
        tree = jax.tree.structure(nnx.split(layer)[1])
        x = jax.ShapeDtypeStruct((BATCH, SEQ, config.embed), "bfloat16", sharding=NamedSharding(mesh, P("dp")))

        def step(weights: list[Any], x: Any) -> Any:
            return nnx.merge(form, jax.tree.unflatten(tree, weights))(x)

        return jax.jit(step).trace(arguments, x).lower(lowering_platforms=("tpu",))


def lower_torchxla() -> Any:
    from torchxla_impl.own import program, start

    start(num_devices=8)
    import numpy as np
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs

    from meshes.models import model
    from torchxla_impl.decoder.plain_layer import LlamaDecoderLayer

    config, mesh = model("tiny"), xs.Mesh(np.arange(8), tuple(AXES.values()), tuple(AXES))
    layer = LlamaDecoderLayer(config, mesh=mesh).to(torch_xla.device())
    layer.shard()
    x = torch.zeros(BATCH, SEQ, config.embed, dtype=torch.bfloat16).to(torch_xla.device())
    xs.mark_sharding(x, mesh, ("dp", None, None))
    return program(layer(x))


if __name__ == "__main__":
    from compare import collectives

    lowered = {"jax": lower_jax, "torchxla": lower_torchxla}[sys.argv[1]]()
    rows = collectives(lowered, axes=AXES, topology="v5e:2x4")
    print(json.dumps(sorted([row.kind, row.axes, row.payload_bytes, row.executions] for row in rows)))
