"""Which cases cannot be, and what would be right: a model's sizes against a mesh's."""

from math import isqrt, lcm, prod
from typing import TYPE_CHECKING

from meshes.dims import is_sequence_parallel
from meshes.process.errors import MeshError

LARGEST = 2**31 - 1
"""Of a number of a case."""

MOST_NUMBERS = 2**58
"""Of a step: tokens × layers × experts × width, or × vocabulary.  Bytes of more do not fit 64 bits."""

CAPACITY = 1.25
"""Of each expert, by default: so many times its even share, as MaxText and Switch Transformer are usually run."""

if TYPE_CHECKING:
    from meshes.case import Case


def check(case: "Case") -> None:
    """Raise `MeshError`, one line, where a dim does not divide or a split means nothing."""
    _check_experts(case)
    _check_heads(case)
    for dim in ("ffn", "vocab", "expert_ffn", "shared_ffn", "experts"):
        _check_divides(case, dim)
    _check_stages(case)
    _check_sequence(case)
    _check_batch(case)
    _check_size(case)


def kv_heads(heads: int, kv: int, tp: int) -> int | None:
    """The fewest KV heads, copies included, that `tp` shards and the query heads both divide into; `None`: none."""
    copied = lcm(kv, tp)
    return None if heads % tp or heads % copied else copied


def _check_experts(case: "Case") -> None:
    model, mesh = case.model, case.mesh
    if not model.experts and mesh.ep > 1:
        raise MeshError(
            f"mesh {mesh.name} splits experts over ep{mesh.ep}, but {model.name} has none; use dp, cp, pp and tp, or a "
            f"model with experts (see --list models)"
        )
    if not model.experts and case.capacity != CAPACITY:
        raise MeshError(f"capacity is {case.capacity}, but {model.name} has no experts that it could hold for")
    if case.capacity is not None and not 0 < case.capacity < float("inf"):
        raise MeshError(f"capacity is {case.capacity}; write a factor greater than 0, like 1.25, or full")


def _check_heads(case: "Case") -> None:
    model, tp = case.model, case.mesh.tp
    if case.plan.rules["heads"] and kv_heads(model.heads, model.kv_heads, tp) is None:
        fits = [n for n in divisors(model.heads) if kv_heads(model.heads, model.kv_heads, n)]
        dims = f"heads={model.heads}, kv_heads={model.kv_heads}"
        raise MeshError(
            f"tp{tp} does not divide the heads of {model.name} ({dims}), each KV head on one shard or copied to "
            f"several; tp sizes that fit: {_listed(fits)}"
        )


def _check_divides(case: "Case", dim: str) -> None:
    size, axis = getattr(case.model, dim), case.plan.rules[dim]
    if axis and size % case.mesh.axes[axis]:
        raise MeshError(_refusal(case, axis, dim, size))


def _check_stages(case: "Case") -> None:
    if case.model.layers % case.mesh.pp:
        raise MeshError(_refusal(case, "pp", "layers", case.model.layers))


def _refusal(case: "Case", axis: str, dim: str, size: int) -> str:
    fits = [n for n in divisors(size) if axis != "tp" or _tp_fits(case, n)]
    return (f"{axis}{case.mesh.axes[axis]} does not divide {dim}={size} of {case.model.name}; "
            f"{axis} sizes that fit: {_listed(fits)}")  # fmt: skip


def divisors(size: int) -> list[int]:
    """Every size that it can be split into evenly, the smallest first."""
    small = [n for n in range(1, isqrt(size) + 1) if size % n == 0]
    return sorted({*small, *(size // n for n in small)})


def _tp_fits(case: "Case", tp: int) -> bool:
    model, split = case.model, case.plan.rules
    dims = [dim for dim in ("ffn", "vocab", "expert_ffn", "shared_ffn") if split[dim]]
    heads = not split["heads"] or kv_heads(model.heads, model.kv_heads, tp) is not None
    return heads and all(getattr(model, dim) % tp == 0 for dim in dims)


def _check_sequence(case: "Case") -> None:
    ways = {"cp": case.mesh.cp}
    if is_sequence_parallel(case.plan.rules):
        ways["tp"] = case.mesh.tp
    if case.seq % prod(ways.values()):
        split = " · ".join(f"{axis}{size}" for axis, size in ways.items() if size > 1)
        total = prod(ways.values())
        raise MeshError(
            f"seq {case.seq} cannot be split evenly over {split}; a multiple of {total} fits, "
            f"like {max(case.seq // total, 1) * total}"
        )


def _check_batch(case: "Case") -> None:
    if case.mesh.pp == 1 and case.microbatches != 1:
        raise MeshError(
            f"microbatches is {case.microbatches}, but mesh {case.mesh.name} has no pipeline; with pp=1 it is 1"
        )
    ways = case.mesh.dp * case.mesh.ep * case.microbatches
    if case.batch % ways:
        near = max(case.batch // ways, 1) * ways
        raise MeshError(
            f"batch {case.batch} cannot be split evenly over dp{case.mesh.dp} · ep{case.mesh.ep} · {case.microbatches} "
            f"microbatches; a multiple of {ways} fits, like {near}"
        )


def _check_size(case: "Case") -> None:
    model = case.model
    width = max(model.embed, model.heads * model.head_dim, model.ffn, model.expert_ffn, model.shared_ffn)
    numbers = case.batch * (case.seq + case.room) * max(model.layers * max(model.experts, 1) * width, model.vocab)
    if numbers > MOST_NUMBERS:
        raise MeshError(
            f"batch {case.batch} × {case.seq} tokens of {model.name} are {numbers:.1e} numbers in a step; at most "
            f"{MOST_NUMBERS:.1e} are counted"
        )


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes)) or "none"
