"""Compiles tpu-inference's Llama, of Llama 3.1 8B's widths, for TPUs that need not be there, and writes the HLO text.

    python lower_tpu_inference.py PART LAYERS FILE [VOCAB]

PART: `layer` (LlamaDecoderLayer), `step` (LlamaForCausalLM of LAYERS layers, without the head) or `logits` (its head).
VOCAB: the axis over which embedding and head are split; without it tpu-inference's own choice.
It runs in an environment of its own: docs/own_program.md, "Programs of another environment".
"""

# ruff: noqa: E402

import gzip
import importlib.abc
import importlib.machinery
import sys
import types
from types import SimpleNamespace

ABSENT = {
    "vllm",
    "torch",
    "torchvision",
    "torchax",
    "transformers",
    "tokamax",
    "qwix",
    "pathwaysutils",
    "tpu_info",
    "numba",
    "requests",
    "safetensors",
    "huggingface_hub",
}


class Kind(type):
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, item):
        return cls

    def __or__(cls, other):
        return cls

    __ror__ = __or__


class Stub(metaclass=Kind):
    """Stands for every class and function of the packages that are absent: imported and subclassed, never used."""

    def __new__(cls, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else object.__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        return Stub

    def __call__(self, *args, **kwargs):
        return Stub


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in ABSENT else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = lambda name: Stub
        return module

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, Finder())

import jax
import jax.numpy as jnp
from flax import nnx
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = topologies.get_topology_desc("v5e:2x4", platform="tpu").devices
jax.devices = lambda *args: DEVICES  # the kernels ask for which TPU they are compiled

import numpy as np
from tpu_inference.distributed import jax_parallel_state
from tpu_inference.kernels.ragged_paged_attention.v3.kernel import get_kv_cache_shape
from tpu_inference.layers.common.attention_metadata import AttentionMetadata
from tpu_inference.layers.common.sharding import ShardingAxisName
from tpu_inference.layers.jax import pp_utils
from tpu_inference.models.common.compiler_options import get_step_fn_compiler_options
from tpu_inference.models.jax.llama3 import LlamaDecoderLayer, LlamaForCausalLM

PART, LAYERS, FILE, *VOCAB = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
if VOCAB:
    ShardingAxisName.override(VOCAB=VOCAB[0])
DATA, MODEL, TOKENS, SEQUENCES, PAGES, PAGE = 2, 4, 64, 8, 64, 128
BF, I32 = jnp.bfloat16, jnp.int32
mesh = Mesh(np.array(DEVICES).reshape(DATA, MODEL), ("data", "model"))  # as the runner's _create_2d_mesh
config = SimpleNamespace(
    hidden_size=4096,
    intermediate_size=14336,
    hidden_act="silu",
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=128,
    rms_norm_eps=1e-5,
    rope_theta=500000.0,
    rope_scaling=None,
    num_hidden_layers=LAYERS,
    tie_word_embeddings=False,
)
vllm_config = SimpleNamespace(
    model_config=SimpleNamespace(hf_config=config, get_vocab_size=lambda: 128256, dtype=BF),
    cache_config=SimpleNamespace(cache_dtype="auto"),
    speculative_config=None,
)


def split(shape, dtype, *dims):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*dims)))


with jax.set_mesh(mesh):
    if PART == "layer":
        model = nnx.eval_shape(lambda: LlamaDecoderLayer(config, BF, nnx.Rngs(0), mesh, "auto"))
    else:
        pp_utils.get_pp_indices = lambda layers, rank, stages: (0, layers)  # vllm's own; one stage
        jax_parallel_state._PP = jax_parallel_state.GroupCoordinator(0, 1)
        model = nnx.eval_shape(lambda: LlamaForCausalLM(vllm_config, jax.random.key(0), mesh))
    graph, state = nnx.split(model)
    weights = jax.tree.map(lambda w, dims: split(w.shape, w.dtype, *dims), state, nnx.get_partition_spec(state))
    pages, page, heads, packed, width = get_kv_cache_shape(
        PAGES, PAGE, config.num_key_value_heads // MODEL, config.head_dim, BF
    )
    cache = split((pages, page, heads * MODEL, packed, width), BF, "data", None, "model", None, None)
    metadata = AttentionMetadata(
        input_positions=split((TOKENS,), I32, "data"),
        block_tables=split((PAGES,), I32, "data"),
        seq_lens=split((SEQUENCES,), I32, "data"),
        query_start_loc=split((SEQUENCES + DATA,), I32, "data"),
        request_distribution=split((3 * DATA,), I32, "data"),
    )
    hidden = NamedSharding(mesh, P("data", None))

    def layer(weights, cache, x, metadata):
        return nnx.merge(graph, weights)(cache, x, metadata)

    def step(weights, caches, ids, metadata):
        return nnx.merge(graph, weights)(caches, ids, metadata)[:2]

    def logits(weights, x):
        return nnx.merge(graph, weights).compute_logits(x)

    # Shardings, donation and compiler options as model_loader.py and compilation_manager.py have them.
    options = get_step_fn_compiler_options()
    if PART == "layer":
        jitted = jax.jit(layer, donate_argnums=1, out_shardings=(cache.sharding, hidden), compiler_options=options)
        lowered = jitted.lower(weights, cache, split((TOKENS, 4096), BF, "data", None), metadata)
    elif PART == "step":
        out = ([cache.sharding] * LAYERS, hidden)
        jitted = jax.jit(step, donate_argnums=1, out_shardings=out, compiler_options=options)
        lowered = jitted.lower(weights, [cache] * LAYERS, split((TOKENS,), I32, "data"), metadata)
    else:
        jitted = jax.jit(logits, out_shardings=NamedSharding(mesh, P("data", "model")))
        lowered = jitted.lower(weights, split((SEQUENCES, 4096), BF, "data", None))
    text = lowered.compile().as_text()
with gzip.open(FILE, "wt") as file:
    file.write(text)
