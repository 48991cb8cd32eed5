"""The contract's rows for weights that a plan splits over its data axis, to store less: each is gathered to be used.

Like `compare.contract.reference_algorithms`, from the numbers of a case alone.  Definitions: docs/definitions.md,
section 2.
"""

from collections.abc import Iterator
from dataclasses import replace

from compare.contract.row import TABLES, ContractRow, JudgeError
from compare.contract.symbols import Symbols, make_row
from meshes.case import Case

DATA = "dp"
"""The axis over which weights may be split: no other row of the contract runs over it."""
WEIGHTS = "weights"
"""The scope of the row of all layers' weights: a gather serves it from whatever part of the model it was asked for."""
FSDP = "ZeRO-3, arXiv:1910.02054 §7; PyTorch FSDP, arXiv:2304.11277 §3"


def weight_rows(case: Case, *, axis: str = DATA) -> tuple[ContractRow, ...]:
    """An all-gather of each layer's matrices, once a step, and of the two tables.

    axis: what the program calls `dp`.  Norm scales, biases and routers are whole: they are small.  Raises `JudgeError`
    where the mesh has no dp to split them over.
    """
    n = Symbols.of(case)
    if n.size(DATA) < 2:
        raise JudgeError(f"mesh {case.mesh.name} has no {DATA} over which weights could be split")
    return tuple(replace(row, axes=axis, of_weights=True, ticks=1, idle_ticks=0) for row in _rows(n, case))


def _rows(n: Symbols, case: Case) -> Iterator[ContractRow]:
    elements, formula = _layer(n, case)
    yield make_row(
        n,
        scope=WEIGHTS,
        kind="all-gather",
        axis=DATA,
        executions=n.layers // n.size("pp"),
        payload=elements * n.b,
        formula=f"L/pp = {n.layers}/{n.size('pp')} times ({formula})·b = {elements}·{n.b}, "
        f"each {n.wire_formula(DATA, 'all-gather')}",
        source=FSDP,
    )
    shards = n.size("tp") if case.plan.rules["vocab"] else 1
    for scope, which in zip(TABLES, ("first", "last"), strict=True):
        yield make_row(
            n,
            scope=scope,
            kind="all-gather",
            axis=DATA,
            executions=1,
            payload=n.vocab * n.embed // shards * n.b,
            devices=n.stage(which),
            formula=f"V·D/{shards}·b = {n.vocab}·{n.embed}/{shards}·{n.b}, {n.wire_formula(DATA, 'all-gather')}"
            f"{_stage(n, which)}",
            source=FSDP,
        )


def _stage(n: Symbols, which: str) -> str:
    number = 0 if which == "first" else n.size("pp") - 1
    return f", stage {number} only" if n.size("pp") > 1 else ""


def _layer(n: Symbols, case: Case) -> tuple[int, str]:
    """The elements of a layer's matrices on one device, put together over dp, and their formula."""
    model, split = case.model, case.plan.rules
    attention = n.head_dim * 2 * (n.heads + n.kv)
    words = [f"head_dim·2·(heads/tp + kv_heads/tp) = {n.head_dim}·2·({n.heads} + {n.kv})"]
    wide = attention
    parts = (
        ("ffn", 0 if model.experts else model.ffn, 1),
        ("shared_ffn", model.shared_ffn if model.experts else 0, 1),
        ("expert_ffn", model.expert_ffn if model.experts else 0, model.experts // n.size("ep")),
    )
    for name, size, copies in parts:
        if size:
            shards = n.size("tp") if split[name] else 1
            wide += copies * 3 * size // shards
            words.append(
                f"{f'{copies}·' if copies > 1 else ''}3·{name}/{shards} = "
                f"{f'{copies}·' if copies > 1 else ''}3·{size // shards}"
            )
    return n.embed * wide, f"D·({'; '.join(words)})"
