"""Notes on a contract's numbers: what a case adds to the model, and what it leaves out."""

from collections.abc import Iterator

from meshes.case import Case
from meshes.dims import is_sequence_parallel
from meshes.memory import cache_bytes


def list_notes(case: Case) -> list[str]:
    """Sentences on the plan of one phase; none where the rows say all."""
    return [*_style(case), *_stream(case), *_merge(case), *_experts(case), *_copies(case)]


def _style(case: Case) -> Iterator[str]:
    """The style of the default programs, where it is not the usual one."""
    if case.style == "weights":
        yield "Style weights: only weights, cache and inputs are pinned; the partitioner splits the activations."
    elif case.style == "explicit":
        yield "Style explicit: every collective is written by hand, and the partitioner has nothing to decide."
    elif case.style == "typed":
        yield "Style typed: each array's sharding is in its type, and what changes it is written as a reshard."


def _stream(case: Case) -> Iterator[str]:
    """Sequence parallelism, or why this phase does not use it."""
    if not is_sequence_parallel(case.plan.rules):
        return
    tp = case.mesh.tp
    if case.phase == "prefill":
        yield f"Sequence parallelism: tp{tp} splits the tokens of the residual stream."
        return
    sequences = case.batch // (case.mesh.dp * case.mesh.ep * case.microbatches)
    if sequences % tp:
        yield (
            f"Sequence parallelism is not used in decode: {sequences} sequences of a microbatch cannot be divided "
            f"among tp{tp}, so that each layer has all-reduces, as without it."
        )
    else:
        yield f"Sequence parallelism: with one position to a sequence, tp{tp} splits the sequences of the stream."


def _merge(case: Case) -> Iterator[str]:
    """Why programs may move less than the merge of a split cache."""
    if case.phase == "decode" and case.mesh.cp > 1 and case.dtype_bytes < 4:
        yield (
            f"The parts of a softmax over cp{case.mesh.cp} are merged in float32; a program that sums its output in "
            f"{case.dtype} leaves about half of the row unserved."
        )


def _experts(case: Case) -> Iterator[str]:
    """How many of the slots that are sent to experts can be empty, and whether choices are dropped."""
    model = case.model
    if not model.experts:
        return
    tokens, slots = case.group_tokens, case.expert_slots
    total_slots, choices = model.experts * slots, tokens * model.experts_per_token
    dropped = "no token is dropped" if slots == tokens else "tokens over capacity are dropped"
    yield (
        f"Expert capacity: {_count(slots, 'slot')} per expert for each group of {_count(tokens, 'token')} "
        f"({_count(total_slots, 'slot')} for {_count(choices, 'routed token')}); {dropped}."
    )


def _copies(case: Case) -> Iterator[str]:
    """What it costs that tp is larger than the number of KV heads."""
    kv_heads = case.model.kv_heads
    copies = case.kv_heads // kv_heads
    if copies == 1:
        return
    more = cache_bytes(case) * (copies - 1) // copies
    ring = case.phase == "prefill" and case.mesh.cp > 1
    wire = (
        f"the ring of layer.attention.core carries the copies, too, {copies} × as many bytes; no other collective does"
        if ring
        else "no collective carries them"
    )
    yield (
        f"Each of the {kv_heads} KV heads is stored {copies} times, so that every shard of tp{case.mesh.tp} has as "
        f"many: the cache is {copies} × as large, {more / 1e6:,.1f} MB more per device; {wire}."
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
