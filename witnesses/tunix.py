"""google-tunix's Flax NNX decoders, with their own sharding config for sampling."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jax import Array, lax

from meshes.case import Case
from meshes.models import Model
from witnesses.witness import Argument, Axes, Enter, Program, Witness, hide_frame, input_arguments, kv_arguments

MODULES = {"llama": ("llama3", "Llama3"), "qwen3": ("qwen3", "Qwen3")}
"""By the `family` of a model: tunix's module and its class."""

DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32}


def build(witness: Witness, case: Case, enter: Enter) -> Program:
    """A decoder of tunix and a cache as long as the case's."""
    return _build(witness, case, enter, shardings={})


def build_with_whole_norms(witness: Witness, case: Case, enter: Enter) -> Program:
    """The same with the weight of every RMSNorm whole: one line of its sharding config."""
    return _build(witness, case, enter, shardings={"rms_norm_weight": (None,)})


def import_model(family: str) -> Any:
    """The module of a model: `tunix` itself imports a training stack, which no model needs."""
    if "tunix" not in sys.modules:
        spec = find_spec("tunix")
        if spec is None or spec.submodule_search_locations is None:
            raise ImportError("No module named 'tunix'")
        package = ModuleType("tunix")
        package.__path__ = list(spec.submodule_search_locations)
        sys.modules["tunix"] = package
    return import_module(f"tunix.models.{MODULES[family][0]}.model")


def _build(witness: Witness, case: Case, enter: Enter, *, shardings: Mapping[str, tuple[str | None, ...]]) -> Program:
    module, kind = import_model(case.model.family), MODULES[case.model.family][1]
    default_sharding = module.ShardingConfig.get_default_sharding(is_sampling=True)
    config = _config(module, case, shd_config=replace(default_sharding, **shardings))
    form, state = nnx.split(nnx.eval_shape(lambda: getattr(module, kind)(config, rngs=nnx.Rngs(0))))
    flat = nnx.to_flat_state(state)
    names = {path: ".".join(map(str, path)) for path, _ in flat}
    specs = dict(nnx.to_flat_state(nnx.get_partition_spec(state)))
    layers = range(case.model.layers)

    def step(tensors: Mapping[str, Array]) -> tuple[Array, Mapping[str, Array]]:
        model = nnx.merge(
            form, nnx.from_flat_state([(path, each.replace(tensors[names[path]])) for path, each in flat])
        )
        tokens = tensors["tokens"]
        first = tensors.get("position", jnp.int32(0))
        positions = first + jnp.arange(tokens.shape[1], dtype=jnp.int32)
        mask = jnp.arange(case.cache_length)[None, :] <= positions[:, None]
        cache = {
            f"layer_{layer}": {
                "k": tensors[f"cache.k.{layer}"],
                "v": tensors[f"cache.v.{layer}"],
                "end_index": lax.broadcast(first, (tokens.shape[0],)),
            }
            for layer in layers
        }
        with _scopes(witness, model, enter=enter):
            logits, cache = model(
                tokens,
                jnp.broadcast_to(positions, tokens.shape),
                cache,
                jnp.broadcast_to(mask, (tokens.shape[0], *mask.shape)),
            )
        kept = {f"cache.{part}.{layer}": cache[f"layer_{layer}"][part] for layer in layers for part in ("k", "v")}
        return logits[:, -1], kept

    return Program(
        arguments=(
            *(
                Argument(
                    name=names[path],
                    role="weight",
                    dims=witness.row(names[path])[0].dims,
                    shape=tuple(each.get_value().shape),
                    dtype=case.dtype,
                    declared=_axes(specs[path], each.get_value().ndim, witness),
                )
                for path, each in flat
            ),
            *kv_arguments(
                case,
                [f"cache.{part}.{layer}" for layer in layers for part in ("k", "v")],
                dims="batch length kv_heads head_dim",
            ),
            *input_arguments(case),
        ),
        step=step,
        constraint=(module, "shard"),
    )


def _config(module: Any, case: Case, *, shd_config: Any) -> Any:
    model = case.model
    known = module.ModelConfig.__dataclass_fields__
    tied = "weight_tying" if "weight_tying" in known else "use_tied_embedding"
    dtypes = {name: DTYPES[case.dtype] for name in ("dtype", "param_dtype") if name in known}
    return module.ModelConfig(
        num_layers=model.layers,
        vocab_size=model.vocab,
        embed_dim=model.embed,
        hidden_dim=model.ffn,
        num_heads=model.heads,
        head_dim=model.head_dim,
        num_kv_heads=model.kv_heads,
        rope_theta=_theta(model),
        norm_eps=model.norm_eps,
        shd_config=shd_config,
        **{tied: model.tied},
        **dtypes,
    )


def _theta(model: Model) -> int:
    return int(model.rope_theta)


def _axes(spec: Any, rank: int, witness: Witness) -> Axes:
    """What tunix declares, in our names of the axes."""
    ours = {name: axis for axis, name in witness.axis_names.items()}
    declared = (*(spec or ()), *(None,) * rank)[:rank]
    return tuple(None if name is None else ours.get(name, name) for name in declared)


@contextmanager
def _scopes(witness: Witness, model: nnx.Module, *, enter: Enter) -> Iterator[None]:
    """Within this context, each module of the model with a scope in the witness opens that scope when called."""
    named: dict[tuple[int, str], str] = {}
    kinds: set[tuple[type, str]] = set()
    for path, module in nnx.iter_modules(model):
        for method in ("__call__", "encode", "decode"):
            full_path = ".".join(map(str, path)) + ("" if method == "__call__" else f":{method}")
            if scope := witness.scope_of(full_path):
                named[id(module), method] = scope
                kinds.add((type(module), method))
    plain = {(kind, method): getattr(kind, method) for kind, method in kinds}

    def wrapper(call: Any, method: str) -> Any:
        @wraps(call)
        def scoped(self: Any, *args: Any, **kwargs: Any) -> Any:
            scope = named.get((id(self), method))
            with enter(scope) if scope else nullcontext():
                return call(self, *args, **kwargs)

        hide_frame(scoped)
        return scoped

    try:
        for (kind, method), call in plain.items():
            setattr(kind, method, wrapper(call, method))
        yield
    finally:
        for (kind, method), call in plain.items():
            setattr(kind, method, call)
