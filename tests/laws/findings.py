"""What is beyond the plan, or not as the plan has it: said once, and the rows that many meshes share."""

from tests.laws.law import SDPA, Law

MERGED = (
    "SDPA becomes a batched matmul that merges batch and heads. GSPMD keeps only one of the two split, and gathers q, "
    "k and v: in prefill k after it was repeated for each query head, in decode k and v of the whole cache. Their row "
    "adds up the bytes of all three"
)
SUMMED = "the plan sends ids one way; a sum that is zero elsewhere brings them to all, in 4 bytes a sequence"
MASKED = "the plan gathers; the twins take the last token by a sum over shards that is zero elsewhere, an all-reduce"


Both = tuple[str | None, str | None]
"""Bytes in prefill, and in decode."""


def sdpa_laws(*, q: Both, k: Both, v: Both) -> tuple[Law, ...]:
    """The three gathers of `F.scaled_dot_product_attention`."""
    return tuple(
        Law(
            "layer.attention.core",
            "all-gather@tp",
            "layer",
            *each,
            programs=(SDPA,),
            what=what,
            finding=True,
            note=MERGED,
        )
        for what, each in (("q", q), ("k", k), ("v", v))
    )


def sample_laws(values: str, ids: str) -> tuple[Law, Law]:
    """The best value of each shard of the vocabulary, and its id, in either phase."""
    return (
        Law("sample", "all-gather@tp", "step", values, values, what="the best value of each shard"),
        Law("sample", "all-gather@tp", "step", ids, ids, what="its id"),
    )


def collect_law(ids: str) -> Law:
    """The ids that the last stage chose, in either phase."""
    return Law("pipeline.collect", "all-reduce@pp", "step", ids, ids, note=SUMMED)
