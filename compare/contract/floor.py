"""The least that a device must compute in a step of the plan, from the numbers of a `Case` alone.

Definitions and limits: docs/metrics.md, section 14.  Every amount is a mean over the devices of the mesh.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from meshes.case import Case

ON_CHIP_BYTES = 160 * 2**20
"""More than any generation has beside its HBM: v4 has 128 MiB of CMEM and twice 16 MiB of VMEM (ISCA 2023)."""


@dataclass(frozen=True, slots=True)
class Least:
    """What one part of the model needs on a device in a step."""

    num_bytes: float = 0
    """Read from and written to the device's memory."""
    flops: float = 0


def count_floor(case: Case) -> Mapping[str, Least]:
    """By scope.  `case` has one phase."""
    num_bytes, flops = _layer_weights(case), _flops(case)
    num_bytes["layer.attention.core"] = _cache_bytes(case)
    num_bytes["embed"] = _embedding_rows(case)
    model, last_stage = case.model, 1 / case.mesh.pp
    # A prompt's last token, which alone goes through the head, is on the last rank of cp.
    last_rank = last_stage / (case.mesh.cp if case.phase == "prefill" else 1)
    num_bytes["head"] = model.embed * model.vocab / _ways(case, "vocab") * case.dtype_bytes * last_rank
    num_bytes["norm"] = num_bytes.get("norm", 0) + model.embed * case.dtype_bytes * last_rank
    devices = case.mesh.num_devices
    return {
        scope: Least(num_bytes.get(scope, 0), flops.get(scope, 0) / devices)
        for scope in dict.fromkeys((*num_bytes, *flops))
    }


def _ways(case: Case, dim: str) -> int:
    """Into how many parts the plan splits a dim."""
    axes = case.rules[dim]
    return prod(case.mesh.axes[axis] for axis in axes.split(",")) if axes else 1


def _layer_weights(case: Case) -> dict[str, float]:
    """Bytes of weights by scope: those of a device's layers once, and for each further microbatch what did not stay.

    In GPipe order a stage's layers all run before the next microbatch; at most ON_CHIP_BYTES of them can stay.
    """
    per_stage = case.model.layers // case.mesh.pp * case.dtype_bytes
    once = {scope: numbers * per_stage for scope, numbers in _layer_parameters(case).items()}
    total = sum(once.values())
    readings = 1 + (case.microbatches - 1) * max(0.0, total - ON_CHIP_BYTES) / total
    return {scope: num_bytes * readings for scope, num_bytes in once.items()}


def _layer_parameters(case: Case) -> dict[str, float]:
    """Of one layer on one device.  KV heads without the copies that tp forces: one device of each pair may read one."""
    model, tp = case.model, _ways(case, "heads")
    width, kv_width = model.heads * model.head_dim / tp, model.kv_heads * model.head_dim / tp
    biases = (width + 2 * kv_width) * model.qkv_bias
    found = {
        "layer.attention.qkv": model.embed * (width + 2 * kv_width) + biases + 2 * model.head_dim * model.qk_norm,
        "layer.attention.out": model.embed * width,
        "norm": 2.0 * model.embed,
    }
    shared = model.shared_ffn / _ways(case, "shared_ffn") if model.experts else model.ffn / _ways(case, "ffn")
    if shared:
        found |= {"layer.mlp.up": 2 * model.embed * shared, "layer.mlp.down": model.embed * shared}
    if model.experts:
        gate = model.embed * bool(model.shared_ffn)
        found["layer.moe.route"] = float(model.embed * model.experts + gate)
        expert = 3 * model.embed * model.expert_ffn / _ways(case, "expert_ffn")
        found["layer.moe.experts"] = _chosen_experts(case) / case.mesh.ep * expert
    return found


def _chosen_experts(case: Case) -> int:
    """How many experts the tokens of one microbatch choose that share one set of them: with even routing, all can."""
    tokens = _tokens(case) * case.mesh.ep // case.microbatches
    return min(case.model.experts, tokens * case.model.experts_per_token)


def _tokens(case: Case) -> int:
    """Of one device in a step, over all microbatches."""
    sequences = case.batch // _ways(case, "batch")
    return sequences * case.seq // case.mesh.cp if case.phase == "prefill" else sequences


def _cache_bytes(case: Case) -> float:
    """Keys and values, with the copies of KV heads that tp forces: prefill writes them, decode reads them all.

    Decode writes those of the new token, too, on one rank of cp.
    """
    heads = case.kv_heads / _ways(case, "kv_heads")
    position = case.model.layers // case.mesh.pp * 2 * heads * case.model.head_dim * case.dtype_bytes
    sequences = case.batch // _ways(case, "batch")
    new = 0 if case.phase == "prefill" else 1
    return sequences * position * (case.seq + new) / _ways(case, "positions")


def _embedding_rows(case: Case) -> float:
    """The rows that are looked up, on the first stage; of a split table each on one of the devices that share it."""
    rows = min(_tokens(case), case.model.vocab)
    return rows * case.model.embed * case.dtype_bytes / _ways(case, "vocab") / case.mesh.pp


def _flops(case: Case) -> dict[str, float]:
    """Of all devices together: 2 × multiply-adds, each once; a token attends to itself and to what is before it."""
    model, prefill = case.model, case.phase == "prefill"
    tokens = case.batch * (case.seq if prefill else 1)
    pairs = case.batch * (case.seq * (case.seq + 1) // 2 if prefill else case.seq + 1)
    of_token = {
        "layer.attention.qkv": model.embed * model.head_dim * (model.heads + 2 * model.kv_heads),
        "layer.attention.out": model.embed * model.head_dim * model.heads,
    }
    shared = model.shared_ffn if model.experts else model.ffn
    if shared:
        of_token |= {"layer.mlp.up": 2 * model.embed * shared, "layer.mlp.down": model.embed * shared}
    if model.experts:
        of_token["layer.moe.route"] = model.embed * (model.experts + bool(model.shared_ffn))
    layer = {scope: tokens * amount for scope, amount in of_token.items()}
    layer["layer.attention.core"] = 2 * pairs * model.heads * model.head_dim
    if model.experts:
        slots = case.microbatches * case.num_groups * model.experts * case.expert_slots
        choices = min(tokens * model.experts_per_token, slots)
        layer["layer.moe.experts"] = choices * 3 * model.embed * model.expert_ffn
    flops = {scope: 2.0 * model.layers * amount for scope, amount in layer.items()}
    return flops | {"head": 2.0 * case.batch * model.embed * model.vocab}
