"""The arithmetic of the model itself, from the numbers of a `Case` alone: what MFU and *useful FLOPs* count.

Definitions: docs/metrics.md, section 14.
"""

from meshes.case import Case


def count_useful_flops(case: Case) -> int:
    """FLOPs of one step of a phase on all devices together: 2 × multiply-adds of products, each computed once.

    Every token goes through the matrices of every layer (of experts through those that it chooses), attends to all
    positions (those of the prompt, in decode those of the cache: nothing is saved by causality), and one token of each
    sequence goes through the head.
    """
    model, prefill = case.model, case.phase == "prefill"
    tokens, context = (case.batch * case.seq, case.seq) if prefill else (case.batch, case.cache_length)
    attention = 2 * model.embed * model.head_dim * (model.heads + model.kv_heads)
    if model.experts:
        shared = 3 * model.embed * model.shared_ffn + model.embed if model.shared_ffn else 0
        feed_forward = (
            model.embed * model.experts + model.experts_per_token * 3 * model.embed * model.expert_ffn + shared
        )
    else:
        feed_forward = 3 * model.embed * model.ffn
    scores_and_sums = 2 * context * model.heads * model.head_dim
    layers = model.layers * tokens * (attention + feed_forward + scores_and_sums)
    return 2 * (layers + case.batch * model.embed * model.vocab)
