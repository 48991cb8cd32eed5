"""What one layer's reference algorithms move, over tp, cp and ep.  Definitions: docs/definitions.md, section 2."""

from collections.abc import Iterator

from compare.contract.row import ContractRow
from compare.contract.symbols import Letters, row
from meshes.case import Case

MEGATRON = "Megatron-LM, arXiv:1909.08053 §3"
SEQUENCE = "Megatron sequence parallelism, arXiv:2205.05198 §4.2.2"
GSHARD = "GShard, arXiv:2006.16668 §3.2"
PARTIAL_EXPERTS = "Megatron-LM, arXiv:1909.08053 §3, of the experts' matmuls, after GShard's combine"
RING = "Ring Attention, arXiv:2310.01889 §3"
SPLIT_CACHE = "partial softmax results merged (flash-decoding's split of keys and values; arXiv:1805.02867 §3.1)"


def layer_rows(n: Letters, case: Case) -> Iterator[ContractRow]:
    """In the order in which a layer runs them."""
    split, experts = case.plan.rules, case.model.experts > 0
    tp = n.size("tp") > 1
    if tp and split["heads"]:
        yield from _whole_tokens(n, "layer.attention.qkv")
    if n.size("cp") > 1:
        yield _ring(n) if n.prefill else _merge(n)
    if tp and split["heads"]:
        yield _partial_sums(n, "layer.attention.out")
    if experts:
        yield from _experts(n, case, partial=tp and split["expert_ffn"] is not None)
    if tp and split["shared_ffn" if experts else "ffn"] and (case.model.shared_ffn or not experts):
        # Shared experts read the tokens that were gathered for the router.
        yield from () if experts else _whole_tokens(n, "layer.mlp.up")
        yield _partial_sums(n, "layer.mlp.down")


def _whole_tokens(n: Letters, scope: str) -> Iterator[ContractRow]:
    """Under sequence parallelism the tokens that a column-parallel matmul reads are gathered."""
    if n.scattered:
        yield row(
            n, scope=scope, kind="all-gather", axis="tp", executions=n.times, payload=n.hidden,
            formula=f"{n.asks} t·D·b = {n.t}·{n.embed}·{n.b}, each {n.spelled('tp', 'all-gather')}", source=SEQUENCE,
        )  # fmt: skip


def _partial_sums(n: Letters, scope: str, *, source: str = MEGATRON) -> ContractRow:
    """A row-parallel matmul leaves partial sums: they are added up, and under sequence parallelism split, too."""
    kind = "reduce-scatter" if n.scattered else "all-reduce"
    return row(
        n, scope=scope, kind=kind, axis="tp", executions=n.times, payload=n.hidden,
        formula=f"{n.asks} t·D·b = {n.t}·{n.embed}·{n.b}, each {n.spelled('tp', kind)}",
        source=SEQUENCE if n.scattered and source == MEGATRON else source,
    )  # fmt: skip


def _experts(n: Letters, case: Case, *, partial: bool) -> Iterator[ContractRow]:
    """Tokens go to their experts and back; the experts' partial sums are added up after the combine, as tokens."""
    if partial:
        yield from _whole_tokens(n, "layer.moe.route")
    if n.size("ep") > 1:
        yield from (_exchange(n, case, scope) for scope in ("layer.moe.dispatch", "layer.moe.combine"))
    if partial:
        yield _partial_sums(n, "layer.moe.combine", source=PARTIAL_EXPERTS)


def _exchange(n: Letters, case: Case, scope: str) -> ContractRow:
    """Every device sends each expert the slots that its groups of tokens have there, full or empty.

    In prefill a group is a device's part of one sequence; in decode all tokens of a device are one group.
    """
    model = case.model
    groups = case.batch // (n.size("dp") * n.size("ep") * n.m) if n.prefill else 1
    tokens, slots = n.t // groups, case.expert_slots
    limit = (
        f"C = G = {tokens}: no token is dropped" if case.capacity is None else
        f"C = ⌈capacity·k·G/E⌉ = ⌈{case.capacity:g}·{model.experts_per_token}·{tokens}/{model.experts}⌉, "
        f"from 1 to G = {tokens}"
    )  # fmt: skip
    return row(
        n, scope=scope, kind="all-to-all", axis="ep", executions=n.times,
        payload=groups * model.experts * slots * n.embed * n.b,
        formula=f"{n.asks} groups·E·C·D·b = {groups}·{model.experts}·{slots}·{n.embed}·{n.b}, "
                f"each {n.spelled('ep', 'all-to-all')} ({limit}; without empty slots "
                f"t·k·D·b = {n.t}·{model.experts_per_token}·{n.embed}·{n.b})",
        source=GSHARD,
    )  # fmt: skip


def _ring(n: Letters) -> ContractRow:
    """Keys and values of every part of a sequence pass by every rank: cp − 1 hops of a rank's own."""
    hops = n.size("cp") - 1
    return row(
        n, scope="layer.attention.core", kind="collective-permute", axis="cp", executions=hops * n.times,
        payload=2 * n.t * n.kv * n.head_dim * n.b, hops=hops,
        formula=f"(cp−1)·(L/pp)·m = {hops}·({n.layers}/{n.size('pp')})·{n.m} times "
                f"2·t·(kv_heads/tp)·head_dim·b = 2·{n.t}·{n.kv}·{n.head_dim}·{n.b}, from every rank to the next",
        source=RING,
    )  # fmt: skip


def _merge(n: Letters) -> ContractRow:
    """Each rank attends to its part of the cache; maximum, sum and output of the parts are merged, in float32."""
    return row(
        n, scope="layer.attention.core", kind="all-reduce", axis="cp", executions=n.times,
        payload=n.t * n.heads * (n.head_dim + 2) * 4, float_bytes=4,
        formula=f"{n.asks} t·(heads/tp)·(head_dim+2)·4 = {n.t}·{n.heads}·({n.head_dim}+2)·4, "
                f"each {n.spelled('cp', 'all-reduce')}",
        source=SPLIT_CACHE,
    )  # fmt: skip
