"""The contract: what the plan's reference algorithms move, from the numbers of a `Case` alone.

Nothing here knows a sharding, a program or a framework: an error in what makes the shardings must not
be repeated in what they are held against.  Definitions: docs/definitions.md, section 2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from compare.judge.contract import BOTH, FLOATS, INTEGERS, ContractRow, half_up, wire_factor
from meshes.case import Case

MEGATRON = "Megatron-LM, arXiv:1909.08053 §3"
VOCABULARY = "vocabulary-parallel embedding, arXiv:1909.08053 §3"
GREEDY = "greedy choice over a split vocabulary: one winner of each shard"
GPIPE = "GPipe, arXiv:1811.06965 §2"
COLLECT = "the chosen ids return to the stage that embeds them"


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The letters of the formulas."""

    dp: int
    pp: int
    tp: int
    m: int
    layers: int
    embed: int
    b: int
    batch: int
    """B_local: the sequences of one data-parallel rank."""
    t: int
    """Tokens of one microbatch on one device."""

    @classmethod
    def of(cls, case: Case) -> "_Numbers":
        sizes = case.mesh.axes
        local = case.batch // (sizes["dp"] * sizes["ep"])
        tokens = case.seq // sizes["cp"] if case.phase == "prefill" else 1
        return cls(
            dp=sizes["dp"], pp=sizes["pp"], tp=sizes["tp"], m=case.microbatches, layers=case.model.layers,
            embed=case.model.embed, b=case.dtype_bytes, batch=local, t=local * tokens // case.microbatches,
        )  # fmt: skip

    def stage(self, *numbers: int) -> frozenset[int]:
        """The devices of these stages: ids are row-major over dp, pp, tp."""
        return frozenset(
            (replica * self.pp + stage) * self.tp + shard
            for replica in range(self.dp)
            for stage in numbers
            for shard in range(self.tp)
        )

    @property
    def num_devices(self) -> int:
        return self.dp * self.pp * self.tp


def inherent(case: Case) -> tuple[ContractRow, ...]:
    """The rows of one phase of a case, the layers first, then the ends of the step, then the pipeline."""
    n = _Numbers.of(case)
    split = case.plan.rules
    rows: list[ContractRow] = []
    if n.tp > 1:
        rows += _layers(n, scopes=[
            *(["layer.attention.out"] if split["heads"] else []),
            *(["layer.mlp.down"] if split["ffn"] else []),
        ])  # fmt: skip
        if split["vocab"]:
            rows += [_embed(n)]
    if n.pp > 1:
        rows += [_shift(n)]
    if n.tp > 1 and split["vocab"]:
        rows += [_sample(n)]
    if n.pp > 1:
        rows += [_collect(n)]
    return tuple(rows)


def _row(
    n: _Numbers,
    *,
    scope: str,
    kind: str,
    axis: str,
    executions: int,
    payload: int,
    devices: frozenset[int],
    formula: str,
    source: str,
    carries: str = FLOATS,
) -> ContractRow:
    """A row whose payload these devices send; its wire bytes are the mean over all of them and the others."""
    wire = payload * wire_factor(kind, getattr(n, axis)) * Fraction(len(devices), n.num_devices)
    return ContractRow(
        scope=scope, kind=kind, axes=axis, executions=executions, payload_bytes=payload,
        wire_bytes=half_up(wire), step_wire_bytes=half_up(wire * executions), formula=formula, source=source,
        carries=carries, float_bytes=n.b, devices=None if len(devices) == n.num_devices else devices,
        ticks=n.m + n.pp - 1, idle_ticks=n.pp - 1,
    )  # fmt: skip


def _at(n: _Numbers, which: str) -> str:
    return f", on the {which} of {n.pp} stages" if n.pp > 1 else ""


def _layers(n: _Numbers, *, scopes: list[str]) -> Iterator[ContractRow]:
    """Row-parallel matmuls leave partial sums: one all-reduce after each, in every layer."""
    for scope in scopes:
        yield _row(
            n, scope=scope, kind="all-reduce", axis="tp",
            executions=n.layers // n.pp * n.m, payload=n.t * n.embed * n.b, devices=n.stage(*range(n.pp)),
            formula=f"(L/pp)·m = ({n.layers}/{n.pp})·{n.m} times t·D·b = {n.t}·{n.embed}·{n.b}, "
                    f"each 2(tp−1)/tp = 2·{n.tp - 1}/{n.tp} on the wire",
            source=MEGATRON,
        )  # fmt: skip


def _embed(n: _Numbers) -> ContractRow:
    """Each device looks up the ids of its part of the vocabulary; the parts are summed."""
    return _row(
        n, scope="embed", kind="all-reduce", axis="tp",
        executions=1, payload=n.m * n.t * n.embed * n.b, devices=n.stage(0),
        formula=f"m·t·D·b = {n.m}·{n.t}·{n.embed}·{n.b}, 2(tp−1)/tp = 2·{n.tp - 1}/{n.tp} on the wire"
                f"{_at(n, 'first')}",
        source=VOCABULARY,
    )  # fmt: skip


def _shift(n: _Numbers) -> ContractRow:
    """Every stage but the last hands its activations on, once a microbatch."""
    return _row(
        n, scope="pipeline.shift", kind="collective-permute", axis="pp",
        executions=n.m, payload=n.t * n.embed * n.b, devices=n.stage(*range(n.pp - 1)),
        formula=f"m = {n.m} times t·D·b = {n.t}·{n.embed}·{n.b}, from {n.pp - 1} of {n.pp} stages",
        source=GPIPE,
    )  # fmt: skip


def _sample(n: _Numbers) -> ContractRow:
    """The winner of each shard of the vocabulary, its value and its id, to all shards."""
    return _row(
        n, scope="sample", kind="all-gather", axis="tp",
        executions=1, payload=n.tp * n.batch * (n.b + 4), devices=n.stage(n.pp - 1), carries=BOTH,
        formula=f"tp·B_local·(b+4) = {n.tp}·{n.batch}·({n.b}+4), (tp−1)/tp = {n.tp - 1}/{n.tp} on the wire"
                f"{_at(n, 'last')}",
        source=GREEDY,
    )  # fmt: skip


def _collect(n: _Numbers) -> ContractRow:
    """The ids that the last stage chose go to the first, which embeds them next."""
    return _row(
        n, scope="pipeline.collect", kind="collective-permute", axis="pp",
        executions=1, payload=n.batch * 4, devices=n.stage(n.pp - 1), carries=INTEGERS,
        formula=f"B_local·4 = {n.batch}·4, from the last of {n.pp} stages to the first",
        source=COLLECT,
    )  # fmt: skip
