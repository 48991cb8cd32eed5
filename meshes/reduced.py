"""Shrink a case until this machine's CPU can run it: the structure stays, the widths shrink."""

from dataclasses import replace
from typing import Any

from meshes.case import Case
from meshes.dims import is_sequence_parallel

ENOUGH = {"embed": 128, "ffn": 256, "expert_ffn": 64, "shared_ffn": 128, "vocab": 512, "head_dim": 16}
"""Target widths; a dim that is no wider stays."""

WIDTHS = tuple(ENOUGH)

SEQ = 32
"""Target length of a prompt: more tokens only take time."""


def reduce_case(case: Case) -> Case:
    """The same step with smaller widths.

    Kept: mesh, rules, layers, stages, microbatches, batch, heads and their groups, loop and attention.  Shrunk, to
    sizes that the mesh still divides: embed, ffn, vocab, head_dim and seq.  In f32: the CPU compiler widens bf16
    collectives, and would be taken for a framework that does.
    """
    wide, split, sizes = case.model, case.plan.rules, case.mesh.axes
    ways = {dim: sizes[axis] if (axis := split[dim]) else 1 for dim in WIDTHS}
    cut: dict[str, Any] = {dim: _cut(getattr(wide, dim), ENOUGH[dim], ways=ways[dim]) for dim in WIDTHS}
    seq_ways = sizes["cp"] * (sizes["tp"] if is_sequence_parallel(split) else 1)
    small = replace(wide, **cut)
    if small != wide:
        small = replace(small, name=f"{wide.name}-reduced")
    return case.at(model=small, seq=_cut(case.seq, SEQ, ways=seq_ways), dtype="f32")


def describe_reduction(case: Case, small: Case) -> str:
    """What `reduce_case` changed, for labels: `embed 4096 → 128, ffn 14336 → 256, …`; empty when nothing."""
    pairs = [(dim, getattr(case.model, dim), getattr(small.model, dim)) for dim in WIDTHS]
    pairs += [("seq", case.seq, small.seq), ("dtype", case.dtype, small.dtype)]
    return ", ".join(f"{name} {before} → {after}" for name, before, after in pairs if before != after)


def _cut(size: int, enough: int, *, ways: int) -> int:
    """The largest multiple of `ways` up to `enough`, but one at least; a size that is no larger stays."""
    return size if size <= enough else min(max(enough // ways, 1) * ways, size)
