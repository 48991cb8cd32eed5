"""The contract: what the plan's reference algorithms move, from the numbers of a `Case` alone.

Nothing here knows a sharding, a program or a framework: an error in what makes the shardings must not
be repeated in what they are judged by.  Definitions: docs/definitions.md, section 2.
"""

from collections.abc import Iterator

from compare.contract.row import BOTH, INTEGERS, ContractRow
from compare.contract.symbols import Symbols, make_row
from meshes.case import Case

MEGATRON = "Megatron-LM, arXiv:1909.08053 §3"
SEQUENCE = "Megatron sequence parallelism, arXiv:2205.05198 §4.2.2"
GSHARD = "GShard, arXiv:2006.16668 §3.2"
PARTIAL_EXPERTS = "Megatron-LM, arXiv:1909.08053 §3, of the experts' matmuls, after GShard's combine"
RING = "Ring Attention, arXiv:2310.01889 §3"
SPLIT_CACHE = "partial softmax results merged (flash-decoding's split of keys and values; arXiv:1805.02867 §3.1)"
VOCABULARY = "vocabulary-parallel embedding, arXiv:1909.08053 §3"
SCATTERED = "vocabulary-parallel embedding under sequence parallelism, arXiv:2205.05198 §4.2.2"
GREEDY = "greedy sampling over a sharded vocabulary: argmax (value and id) of each shard"
GPIPE = "GPipe, arXiv:1811.06965 §2"
COLLECT = "sampled token ids go from the last stage back to the first"
LAST_PART = "ids are sampled on the last cp rank; every rank of the next step needs them"


def required_rows(case: Case) -> tuple[ContractRow, ...]:
    """The rows of one phase of a case, the layers first, then the ends of the step and the pipeline."""
    n = Symbols.of(case)
    pipeline, tp = n.size("pp") > 1, n.size("tp") > 1
    vocabulary = tp and case.plan.rules["vocab"] is not None
    rows = list(_layer_rows(n, case))
    rows += [_embed_row(n)] if vocabulary else []
    rows += [_shift_row(n)] if pipeline else []
    rows += [_head_row(n)] if n.scattered else []
    rows += [_sample_row(n)] if vocabulary else []
    rows += [_collect_row(n)] if pipeline else []
    rows += [_spread_row(n)] if n.prefill and n.size("cp") > 1 else []
    return tuple(rows)


def _layer_rows(n: Symbols, case: Case) -> Iterator[ContractRow]:
    """In the order in which a layer runs them."""
    split, experts = case.plan.rules, case.model.experts > 0
    tp = n.size("tp") > 1
    if tp and split["heads"]:
        yield from _gather_tokens(n, "layer.attention.qkv")
    if n.size("cp") > 1:
        yield _ring(n) if n.prefill else _merge(n)
    if tp and split["heads"]:
        yield _partial_sums(n, "layer.attention.out")
    if experts:
        yield from _experts(n, case, partial=tp and split["expert_ffn"] is not None)
    if tp and split["shared_ffn" if experts else "ffn"] and (case.model.shared_ffn or not experts):
        # Shared experts read the tokens that were gathered for the router.
        yield from () if experts else _gather_tokens(n, "layer.mlp.up")
        yield _partial_sums(n, "layer.mlp.down")


def _gather_tokens(n: Symbols, scope: str) -> Iterator[ContractRow]:
    """Under sequence parallelism: an all-gather of the tokens that a column-parallel matmul reads."""
    if n.scattered:
        yield make_row(
            n,
            scope=scope,
            kind="all-gather",
            axis="tp",
            executions=n.times,
            payload=n.hidden,
            formula=f"{n.times_formula} t·D·b = {n.t}·{n.embed}·{n.b}, each {n.wire_formula('tp', 'all-gather')}",
            source=SEQUENCE,
        )


def _partial_sums(n: Symbols, scope: str, *, source: str = MEGATRON) -> ContractRow:
    """The sum of a row-parallel matmul's partial results: all-reduce; under sequence parallelism reduce-scatter."""
    kind = "reduce-scatter" if n.scattered else "all-reduce"
    return make_row(
        n,
        scope=scope,
        kind=kind,
        axis="tp",
        executions=n.times,
        payload=n.hidden,
        token_width=n.embed,
        formula=f"{n.times_formula} t·D·b = {n.t}·{n.embed}·{n.b}, each {n.wire_formula('tp', kind)}",
        source=SEQUENCE if n.scattered and source == MEGATRON else source,
    )


def _experts(n: Symbols, case: Case, *, partial: bool) -> Iterator[ContractRow]:
    """Tokens go to their experts and back; the experts' partial sums are added up after the combine, token by token."""
    if partial:
        yield from _gather_tokens(n, "layer.moe.route")
    if n.size("ep") > 1:
        yield from (_exchange(n, case, scope) for scope in ("layer.moe.dispatch", "layer.moe.combine"))
    if partial:
        yield _partial_sums(n, "layer.moe.combine", source=PARTIAL_EXPERTS)


def _exchange(n: Symbols, case: Case, scope: str) -> ContractRow:
    """Every device sends each expert all slots that its groups of tokens have there, full or empty.

    In prefill a group is a device's part of one sequence; in decode all tokens of a device are one group.
    """
    model = case.model
    groups = case.batch // (n.size("dp") * n.size("ep") * n.m) if n.prefill else 1
    tokens, slots = n.t // groups, case.expert_slots
    limit = (
        f"C = G = {tokens}: no token is dropped"
        if case.capacity is None
        else f"C = ⌈capacity·k·G/E⌉ = ⌈{case.capacity:g}·{model.experts_per_token}·{tokens}/{model.experts}⌉, "
        f"from 1 to G = {tokens}"
    )
    return make_row(
        n,
        scope=scope,
        kind="all-to-all",
        axis="ep",
        executions=n.times,
        payload=groups * model.experts * slots * n.embed * n.b,
        token_elements=n.size("ep") * n.t * n.embed,
        formula=f"{n.times_formula} groups·E·C·D·b = {groups}·{model.experts}·{slots}·{n.embed}·{n.b}, "
        f"each {n.wire_formula('ep', 'all-to-all')} ({limit}; without empty slots "
        f"t·k·D·b = {n.t}·{model.experts_per_token}·{n.embed}·{n.b})",
        source=GSHARD,
    )


def _ring(n: Symbols) -> ContractRow:
    """The keys and values of every rank visit every other rank: cp − 1 hops."""
    hops = n.size("cp") - 1
    return make_row(
        n,
        scope="layer.attention.core",
        kind="collective-permute",
        axis="cp",
        executions=hops * n.times,
        payload=2 * n.t * n.kv * n.head_dim * n.b,
        hops=hops,
        formula=f"(cp−1)·(L/pp)·m = {hops}·({n.layers}/{n.size('pp')})·{n.m} times "
        f"2·t·(kv_heads/tp)·head_dim·b = 2·{n.t}·{n.kv}·{n.head_dim}·{n.b}, from every rank to the next",
        source=RING,
    )


def _merge(n: Symbols) -> ContractRow:
    """Each rank attends to its part of the cache; maximum, sum and output of the parts are merged, in float32."""
    return make_row(
        n,
        scope="layer.attention.core",
        kind="all-reduce",
        axis="cp",
        executions=n.times,
        payload=n.t * n.heads * (n.head_dim + 2) * 4,
        float_bytes=4,
        sums=(("maximum", n.t * n.heads), ("add", n.t * n.heads), ("add", n.t * n.heads * n.head_dim)),
        formula=f"{n.times_formula} t·(heads/tp)·(head_dim+2)·4 = {n.t}·{n.heads}·({n.head_dim}+2)·4, "
        f"each {n.wire_formula('cp', 'all-reduce')}",
        source=SPLIT_CACHE,
    )


def _embed_row(n: Symbols) -> ContractRow:
    """Each device looks up the ids of its part of the vocabulary; the parts are summed."""
    kind = "reduce-scatter" if n.scattered else "all-reduce"
    return make_row(
        n,
        scope="embed",
        kind=kind,
        axis="tp",
        executions=1,
        payload=n.m * n.hidden,
        devices=n.stage("first"),
        formula=f"m·t·D·b = {n.m}·{n.t}·{n.embed}·{n.b}, {n.wire_formula('tp', kind)}{n.stage_text(which='first')}",
        source=SCATTERED if n.scattered else VOCABULARY,
    )


def _shift_row(n: Symbols) -> ContractRow:
    """Every stage but the last sends its activations to the next, once per microbatch; of a split stream, its shard."""
    stages, ways = n.size("pp"), n.size("tp") if n.scattered else 1
    split, parts = ("/tp", f"/{ways}") if n.scattered else ("", "")
    return make_row(
        n,
        scope="pipeline.shift",
        kind="collective-permute",
        axis="pp",
        executions=n.m,
        payload=n.hidden // ways,
        devices=n.devices(pp=range(stages - 1)),
        formula=f"m = {n.m} times t·D·b{split} = {n.t}·{n.embed}·{n.b}{parts}, {_senders(stages)}",
        source=GPIPE,
    )


def _senders(stages: int) -> str:
    return f"sent by stages 0 to {stages - 2}" if stages > 2 else "sent by stage 0 only"


def _head_row(n: Symbols) -> ContractRow:
    """Under sequence parallelism: an all-gather of the tokens whose successors are chosen."""
    return make_row(
        n,
        scope="head",
        kind="all-gather",
        axis="tp",
        executions=1,
        payload=n.batch * n.embed * n.b,
        devices=n.sampling_devices(),
        vocab=n.vocab,
        formula=f"B_local·D·b = {n.batch}·{n.embed}·{n.b}, {n.wire_formula('tp', 'all-gather')}"
        f"{n.stage_text(which='last')}",
        source="Megatron sequence parallelism, arXiv:2205.05198 §4.2.2, of the last tokens alone",
    )


def _sample_row(n: Symbols) -> ContractRow:
    """An all-gather of the winner of each shard of the vocabulary: its value and its id."""
    shards = n.size("tp")
    return make_row(
        n,
        scope="sample",
        kind="all-gather",
        axis="tp",
        executions=1,
        payload=shards * n.batch * (n.b + 4),
        devices=n.sampling_devices(),
        carries=BOTH,
        vocab=n.vocab,
        formula=f"tp·B_local·(b+4) = {shards}·{n.batch}·({n.b}+4), {n.wire_formula('tp', 'all-gather')}"
        f"{n.stage_text(which='last')}",
        source=GREEDY,
    )


def _collect_row(n: Symbols) -> ContractRow:
    """The ids that the last stage chose go to the first, which embeds them next."""
    return make_row(
        n,
        scope="pipeline.collect",
        kind="collective-permute",
        axis="pp",
        executions=1,
        payload=n.batch * 4,
        devices=n.sampling_devices(),
        carries=INTEGERS,
        formula=f"B_local·4 = {n.batch}·4, from stage {n.size('pp') - 1} to stage 0{n.rank_text()}",
        source=COLLECT,
    )


def _spread_row(n: Symbols) -> ContractRow:
    """In prefill the ids that the last cp rank chose go to the other ranks, which embed them next, too."""
    return make_row(
        n,
        scope="pipeline.collect",
        kind="collective-broadcast",
        axis="cp",
        executions=1,
        payload=n.batch * 4,
        devices=n.stage("first"),
        carries=INTEGERS,
        formula=f"B_local·4 = {n.batch}·4 from cp rank {n.size('cp') - 1}, "
        f"{n.wire_formula('cp', 'collective-broadcast')}{n.stage_text(which='first')}",
        source=LAST_PART,
    )
