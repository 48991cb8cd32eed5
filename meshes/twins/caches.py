"""How a step keeps keys and values: the names of their tensors, and how a decode step writes and reads them.

The same for both twins.  What is computed is the same in every way; what XLA makes of it is not.
"""

from dataclasses import dataclass

from meshes.case import Case
from meshes.variants import find_variant


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How a decode step puts the new token's keys and values into a layer's cache, and reads them."""

    read: str
    """`written`: what was written is read.  Else the cache is read before it is written, and the new token is put among
    what was read by `select` (a mask over the positions), `slice` (dynamic_update_slice) or `index` (`index_copy` of
    PyTorch, `.at[].set` of JAX)."""
    write: str
    """`slice`: the new token alone; `select` or `index`: likewise the whole layer in which it was put."""


CACHE_USES = {
    "cache-select": CacheUse(read="select", write="select"),
    "cache-slice": CacheUse(read="slice", write="slice"),
    "cache-index": CacheUse(read="index", write="index"),
    "cache-written": CacheUse(read="written", write="slice"),
    "cache-written-index": CacheUse(read="written", write="index"),
}
"""By the variant of a case."""


def choose_cache_use(case: Case) -> CacheUse:
    """The case's variant; else what was the fastest on most meshes, in both twins (docs/surprises/cache.py).

    In a scan all layers are one array, which XLA copies where it is written before it is read; split positions have XLA
    gather or copy what a slice at a traced place would touch.  Unrolled each layer has its own.
    """
    if name := find_variant(case, site="cache"):
        return CACHE_USES[name]
    if case.loop == "unrolled":
        return CacheUse(read="written", write="slice")
    return CacheUse(read="select", write="select" if case.mesh.cp > 1 else "slice")


def describe_cache_use(case: Case) -> dict[str, str]:
    """The key of about.json; empty of a prefill, which reads no cache."""
    if case.phase == "prefill":
        return {}
    how = choose_cache_use(case)
    return {"cache": f"{how.read}, {how.write}"}


def cache_names(case: Case) -> tuple[tuple[str, str], ...]:
    """Of keys and values: one pair for all layers where they are in a scan, else a pair for each layer of a stage."""
    if case.loop == "scan":
        return (("cache.k", "cache.v"),)
    return tuple((f"cache.k.{layer}", f"cache.v.{layer}") for layer in range(case.model.layers // case.mesh.pp))
