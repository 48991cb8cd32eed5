"""Candidate remedies: a table from the scope and cause of bytes beyond the plan to the changes worth compiling."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compare.report.grouping import largest_first, sum_by
from compare.report.model.codec import copy_fields
from meshes.case import Case
from meshes.dims import rules
from meshes.mesh_argument import Plan
from meshes.process.errors import MeshError
from meshes.variants import PIN, VARIANTS, Variant

Group = tuple[str, str, str, str, str]
"""Scope, axes, kind, verdict, cause."""

BYTES, TIME = "bytes", "time"
"""Why a remedy is tried: it may remove bytes that were found; or nothing is known of it but that it may be faster."""

CODE, PLAN, HAND = "code", "plan", "hand"
"""What a remedy changes: how a part is written; the plan; every collective, written explicitly."""

CORE = "layer.attention.core"
_MERGED = ("activation-gather", "cache-gather", "full-replication", "layout-change")
"""Causes that an attention call has when it merges split dims."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """One change to a case, and the line of code that makes it in the framework."""

    name: str
    scope: str
    site: str
    """What it replaces; a program has at most one remedy of a site."""
    sentence: str
    """What to do, as an imperative."""
    code: str
    changes: Mapping[str, object] = field(default_factory=dict)
    """Fields of the case, except its variants."""
    variants: tuple[str, ...] = ()
    kind: str = CODE
    aim: str = BYTES


def candidate_remedies(case: Case, groups: Mapping[Group, int], *, arm: str) -> list[Remedy]:
    """The remedies worth compiling for these groups of bytes of one program, largest group first; then all variants
    that may be faster.

    case: of one phase.
    """
    scopes = _by_bytes(groups)
    candidates: dict[str, Remedy] = {}
    for key in sorted(groups, key=lambda key: -groups[key]):
        for remedy in _for_group(case, key, arm=arm, scopes=scopes):
            candidates.setdefault(remedy.name, remedy)
    for row in VARIANTS.values():
        if arm in row.code and case.phase in row.phases and not row.name.startswith(PIN):
            candidates.setdefault(row.name, replace(_of(row, arm), aim=TIME))
    return [remedy for remedy in candidates.values() if can_be(case, [remedy])]


def apply_remedies(case: Case, remedies: Iterable[Remedy]) -> Case:
    """The case with these remedies.  Raises `MeshError` if they do not fit it."""
    return case.at(**case_changes(case, remedies))


def case_changes(case: Case, remedies: Iterable[Remedy]) -> dict[str, object]:
    """The fields of the case that these remedies change."""
    applied = list(remedies)
    words = {word: value for remedy in applied for word, value in remedy.changes.items()}
    chosen = {*case.variants, *(name for remedy in applied for name in remedy.variants)}
    # In the order of the list, so that equal sets are one program.
    variants = tuple(name for name in VARIANTS if name in chosen)
    return words | ({"variants": variants} if variants != case.variants else {})


def can_be(case: Case, remedies: Sequence[Remedy]) -> bool:
    """Whether they fit the case, together."""
    try:
        apply_remedies(case, remedies)
    except MeshError:
        return False
    return True


def _by_bytes(groups: Mapping[Group, int]) -> list[str]:
    """The scopes with avoidable bytes, most bytes first."""
    return list(largest_first(sum_by((key[0], amount) for key, amount in groups.items())))


def _for_group(case: Case, key: Group, *, arm: str, scopes: Sequence[str]) -> Iterator[Remedy]:
    """The table: the remedies for one group's scope, verdict and cause."""
    scope, _, _, verdict, cause = key
    if scope == CORE and verdict == "induced" and cause in _MERGED:
        yield from _attention(case, arm=arm)
    if verdict == "induced" and case.style == "weights":
        yield from _pins(case, arm=arm, scopes=scopes)
    if cause == "bubble" or (cause == "replicated" and scope == "pipeline.shift"):
        yield from _microbatches(case)
    if scope in ("embed", "head", "sample") and cause in ("replicated", "logits-gather", "bubble"):
        yield from _whole_vocabulary(case)
    if verdict == "inflated" and case.style != "explicit":
        yield _by_hand(arm)


def _attention(case: Case, *, arm: str) -> Iterator[Remedy]:
    rows = [row for row in VARIANTS.values() if row.site == "attention"]
    if case.attention == "idiomatic" and not any(VARIANTS[name].site == "attention" for name in case.variants):
        yield Remedy(
            name="attention-einsum",
            scope=CORE,
            site="attention",
            changes={"attention": "einsum"},
            sentence="write attention as einsum over KV heads and the query heads of each",
            code=_EINSUM.get(arm, "--attention einsum"),
        )
        yield from (_of(row, arm) for row in rows if arm in row.code and case.phase in row.phases)


_EINSUM = {
    "jax": "q = q.reshape(*q.shape[:2], kv_heads, -1, q.shape[3])  # from [batch, seq, heads, head_dim]\n"
    "scores = jnp.einsum('bskgh,btkh->bkgst', q, k); … jnp.einsum('bkgst,btkh->bskgh', shares, v)",
    "torchxla": "q = q.unflatten(2, (kv_heads, -1))  # from [batch, seq, heads, head_dim]\n"
    "scores = torch.einsum('bskgh,btkh->bkgst', q, k); … torch.einsum('bkgst,btkh->bskgh', shares, v)",
}


def _pins(case: Case, *, arm: str, scopes: Sequence[str]) -> Iterator[Remedy]:
    """The pins that this model and mesh have, the scopes with most avoidable bytes first."""
    model, absent = case.model, set[str]()
    absent |= set() if case.mesh.pp > 1 else {"pipeline.shift"}
    absent |= set() if case.mesh.pp * case.mesh.cp > 1 else {"pipeline.collect"}
    rows = [row for row in VARIANTS.values() if row.name.startswith(PIN) and row.scope not in absent]
    rows = [row for row in rows if model.experts or not row.scope.startswith("layer.moe")]
    rows = [row for row in rows if not model.experts or model.shared_ffn or not row.scope.startswith("layer.mlp")]
    rank = {scope: number for number, scope in enumerate(scopes)}
    for row in sorted(rows, key=lambda row: rank.get(row.scope, len(rank))):
        if arm in row.code and row.name not in case.variants:
            yield _of(row, arm)


def _of(row: Variant, arm: str) -> Remedy:
    return copy_fields(row, Remedy, code=row.code[arm], variants=(row.name,))


def _microbatches(case: Case) -> Iterator[Remedy]:
    """Twice as many: a bubble is (pp − 1) of m + pp − 1 ticks."""
    if case.mesh.pp > 1:
        more, before = 2 * case.microbatches, case.mesh.pp - 1
        shares = [f"{before}/{m + before}" for m in (case.microbatches, more)]
        yield Remedy(
            name=f"microbatches-{more}",
            scope="pipeline.shift",
            site="microbatches",
            changes={"microbatches": more},
            sentence=f"run {more} microbatches: the bubble is {shares[1]} of the ticks, not {shares[0]}",
            code=f"--microbatches {more}",
            kind=PLAN,
        )


def _whole_vocabulary(case: Case) -> Iterator[Remedy]:
    """Replicate the embedding and the head on every device."""
    if case.plan.rules["vocab"] and case.mesh.tp > 1:
        tables = (1 if case.model.tied else 2) * case.model.vocab * case.model.embed * case.dtype_bytes
        more = tables - tables // case.mesh.tp
        yield Remedy(
            name="vocab-whole",
            scope="embed",
            site="vocab",
            changes={"plan": _without(case, "vocab")},
            sentence=f"replicate the vocabulary on every device, which takes {more / 1e6:,.1f} MB more memory on each",
            code='rules = { vocab = "none" }  # in a TOML spec file',
            kind=PLAN,
        )


def _without(case: Case, dim: str) -> Plan:
    return replace(case.plan, rules=rules({**case.plan.rules, dim: None}))


def _by_hand(arm: str) -> Remedy:
    code = {"jax": "jax.shard_map(step, …) with jax.lax.psum, ppermute, all_to_all, and stages under jax.lax.cond"}
    return Remedy(
        name="style-explicit",
        scope="",
        site="style",
        changes={"style": "explicit"},
        kind=HAND,
        sentence="write every collective explicitly, each stage under a condition, so that idle stages send nothing",
        code=code.get(arm, "xs.enable_manual_sharding(…), where its collectives suffice"),
    )
