"""`Case`: the one input of both twins, of the contract, and of every report."""

import json
from dataclasses import dataclass, replace
from math import ceil, isqrt, lcm, prod
from typing import Any, Self

from meshes.choices import CAPACITY, CHOICES
from meshes.devices.mesh_spec import AXES, MeshSpec
from meshes.devices.topology import Topology
from meshes.dims import OPTIONAL, Rules, is_sequence_parallel
from meshes.dims import rules as read_rules
from meshes.mesh_argument import Plan, read_mesh
from meshes.models import Model, model
from meshes.process.documents import parse_json
from meshes.process.errors import MeshError
from meshes.process.one_line import quote
from meshes.variants import check_variants

LARGEST = 2**31 - 1
"""Largest size or count of a case."""

MOST_NUMBERS = 2**58
"""Numbers in a step, tokens × layers × experts × width, or × vocabulary: bytes of more do not fit 64 bits."""

PIPELINE_MICROBATCHES = 4
"""Of a case with a pipeline that names none."""

NUMBERS = ("batch", "seq", "microbatches", "room")

DTYPE_BYTES = {"bf16": 2, "f32": 4}

CACHE_TILE = 128
"""The cache has room for the prompt and the new token, rounded up to the lanes of a TPU's register."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model on one mesh, and how its step is written."""

    plan: Plan
    model: Model
    phases: tuple[str, ...] = CHOICES["phases"]
    batch: int = 8
    """Global; whole after division by dp, ep and the microbatches."""
    seq: int = 1024
    """Prefill reads this many tokens; in decode the cache holds them, and the new token is the next."""
    microbatches: int = 1
    room: int = 1
    """New tokens that the cache has room for, at least."""
    capacity: float | None = CAPACITY
    """Capacity factor of an expert: slots per even share of a group's tokens; `None` never drops a token."""
    dtype: str = "bf16"
    style: str = "pinned"
    """`weights` leaves activations to the partitioner; `typed`: shardings in types; `explicit`: collectives by hand."""
    loop: str = "scan"
    attention: str = "idiomatic"
    partitioner: str = "native"
    """`native` is the framework's default; `gspmd` gives JAX the partitioner of PyTorch/XLA, `shardy` the reverse."""
    variants: tuple[str, ...] = ()
    """Names of `meshes.variants`: parts of the model that are written in another way."""

    def __post_init__(self) -> None:
        for name, words in CHOICES.items():
            given = self.phases if name == "phases" else (getattr(self, name),)
            if not given or any(word not in words for word in given) or len(set(given)) != len(given):
                raise MeshError(f"{name} is {','.join(map(str, given))!r}; choose from {', '.join(words)}")
        for name in NUMBERS:
            size = getattr(self, name)
            if type(size) is not int or not 1 <= size <= LARGEST:
                raise MeshError(f"{name} is {quote(size)}; write a whole number from 1 to {LARGEST:,}")
        _check(self)
        check_variants(self)

    @classmethod
    def read(
        cls,
        mesh: str,
        *,
        model_name: str = "llama-3.1-8b",
        shapes: Model | None = None,
        microbatches: int | None = None,
        **options: Any,
    ) -> Self:
        """The case of a command line; `microbatches` as `default_microbatches` has them, if none.

        `shapes`: a model that is no preset, like that of a checkpoint.
        """
        plan = read_mesh(mesh)
        return cls(
            plan=plan,
            model=shapes or model(model_name),
            microbatches=default_microbatches(plan.mesh) if microbatches is None else microbatches,
            **options,
        )

    def at(self, **changes: Any) -> "Case":
        """The same case with some fields changed: `case.at(phases=("decode",), attention="einsum")`."""
        return replace(self, **changes)

    @property
    def mesh(self) -> MeshSpec:
        return self.plan.mesh

    @property
    def topology(self) -> Topology:
        return self.plan.topology

    @property
    def phase(self) -> str:
        """The phase of a case of one program; raises `MeshError` for a case of several."""
        if len(self.phases) != 1:
            raise MeshError(f"this case has the phases {', '.join(self.phases)}; a program is of one phase")
        return self.phases[0]

    @property
    def dtype_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def rules(self) -> Rules:
        """The table of this case's only program.

        In decode there is one position: nothing splits it, and under sequence parallelism `tp` splits the sequences of
        the residual stream instead, where it divides them.
        """
        table, at = dict(self.plan.rules), self.mesh
        if self.phase == "decode":
            table |= {"seq": None, "stream_seq": None, "parts": None, "groups": "dp,ep", "routed": "dp"}
            if is_sequence_parallel(self.plan.rules) and self.batch // (at.dp * at.ep * self.microbatches) % at.tp == 0:
                table["stream_batch"] = "dp,ep,tp"
        return table

    @property
    def kv_heads(self) -> int:
        """With their copies: where `tp` does not divide them, each is held by several shards."""
        model_heads, tp = self.model.kv_heads, self.mesh.tp if self.plan.rules["kv_heads"] else 1
        return kv_heads(self.model.heads, model_heads, tp) or model_heads

    @property
    def cache_length(self) -> int:
        """Positions that the cache has room for; with `cp` on each rank those of its part, and the new ones."""
        part = self.seq // self.mesh.cp + self.room
        return self.mesh.cp * -(-part // CACHE_TILE) * CACHE_TILE

    @property
    def group_tokens(self) -> int:
        """Tokens that share the capacity of each expert: a device's part of a sequence, or in decode all of its tokens.

        Of a case's only phase.
        """
        if self.phase == "prefill":
            return self.seq // self.mesh.cp
        return self.batch // (self.mesh.dp * self.mesh.ep * self.microbatches)

    @property
    def num_groups(self) -> int:
        """Groups of a microbatch, over the whole mesh."""
        if self.phase == "prefill":
            return self.batch // self.microbatches * self.mesh.cp
        return self.mesh.dp * self.mesh.ep

    @property
    def expert_slots(self) -> int:
        """Slots that each expert has for the tokens of one group."""
        tokens, model = self.group_tokens, self.model
        if self.capacity is None:
            return tokens
        share = self.capacity * tokens * model.experts_per_token / model.experts
        return tokens if share >= tokens else max(1, ceil(share))

    @property
    def name(self) -> str:
        """Names the run folder: two cases share a name only if they are equal but for arms."""
        parts = [
            self.model.name,
            self.plan.name,
            self.topology.name.replace(":", "-"),
            f"b{self.batch}",
            f"s{self.seq}",
            f"m{self.microbatches}",
        ]
        parts += [
            getattr(self, word) for word in CHOICES if word != "phases" and getattr(self, word) != CHOICES[word][0]
        ]
        parts += [name.replace(":", "-") for name in self.variants]
        parts += [] if self.phases == CHOICES["phases"] else ["+".join(self.phases)]
        parts += [f"{dim}-none" for dim in OPTIONAL if not self.plan.rules[dim]]
        parts += [] if self.room == 1 else [f"room{self.room}"]
        parts += [] if self.capacity == CAPACITY else [f"c{self.capacity:g}" if self.capacity else "cfull"]
        parts += (
            []
            if self.plan.order == AXES
            else ["order-" + "-".join(a for a in self.plan.order if self.mesh.axes[a] > 1)]
        )
        return "-".join(parts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mesh": {"name": self.plan.name, "axes": self.mesh.axes},
            "topology": self.topology.name,
            "order": list(self.plan.order),
            "rules": dict(self.plan.rules),
            "model": self.model.to_dict(),
            **{word: getattr(self, word) for word in NUMBERS},
            "capacity": self.capacity,
            **{word: getattr(self, word) for word in CHOICES},
            "phases": list(self.phases),
            **({"variants": list(self.variants)} if self.variants else {}),
        }

    def to_json(self) -> str:
        """The same text for equal cases, so that it can be a key."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read `to_json` again.  Raises `MeshError` on anything else."""
        try:
            read = parse_json(text)
        except MeshError as error:
            raise MeshError(f"this is not a case: it is {error}") from None
        return cls.from_dict(read)

    @classmethod
    def from_dict(cls, read: Any) -> Self:
        """Read `to_dict` again.  Raises `MeshError` on anything else."""
        try:
            plan = Plan(
                MeshSpec(**read["mesh"]["axes"]),
                Topology.parse(read["topology"]),
                tuple(read["order"]),
                read_rules(read["rules"]),
            )
            words = {word: read[word] for word in ("batch", "seq", "microbatches", *CHOICES)}
            words |= {word: read[word] for word in ("room", "capacity") if word in read}
            words |= {word: tuple(read.get(word, ())) for word in ("phases", "variants")}
            return cls(plan=plan, model=Model.from_dict(read["model"]), **words)
        except KeyError as error:
            raise MeshError(f"this is not a case: it has no {error}") from None
        except (TypeError, AttributeError):
            raise MeshError("this is not a case: it is no object, or a value in it is of another kind") from None


def _check(case: Case) -> None:
    """Raise `MeshError`, one line, where a dim does not divide or a split means nothing."""
    _check_experts(case)
    _check_heads(case)
    for dim in ("ffn", "vocab", "expert_ffn", "shared_ffn", "experts"):
        _check_divides(case, dim)
    _check_stages(case)
    _check_sequence(case)
    _check_batch(case)
    _check_size(case)


def default_microbatches(mesh: MeshSpec) -> int:
    """Of a step, where none are named."""
    return PIPELINE_MICROBATCHES if mesh.pp > 1 else 1


def kv_heads(heads: int, kv: int, tp: int) -> int | None:
    """The fewest KV heads, copies included, that `tp` shards and the query heads both divide into; `None`: none."""
    copied = lcm(kv, tp)
    return None if heads % tp or heads % copied else copied


def _check_experts(case: Case) -> None:
    model, mesh = case.model, case.mesh
    if not model.experts and mesh.ep > 1:
        raise MeshError(
            f"mesh {mesh.name} splits experts over ep{mesh.ep}, but {model.name} has none; use dp, cp, pp and tp, or a "
            f"model with experts (see --list models)"
        )
    if not model.experts and case.capacity != CAPACITY:
        raise MeshError(
            f"capacity is {case.capacity or 'full'}, but {model.name} has no experts that it could hold for"
        )
    if case.capacity is not None and not 0 < case.capacity < float("inf"):
        raise MeshError(f"capacity is {case.capacity}; write a factor greater than 0, like 1.25, or full")


def _check_heads(case: Case) -> None:
    model, tp = case.model, case.mesh.tp
    if case.plan.rules["heads"] and kv_heads(model.heads, model.kv_heads, tp) is None:
        fits = [n for n in divisors(model.heads) if kv_heads(model.heads, model.kv_heads, n)]
        dims = f"heads={model.heads}, kv_heads={model.kv_heads}"
        raise MeshError(
            f"tp{tp} does not divide the heads of {model.name} ({dims}), each KV head on one shard or copied to "
            f"several; tp sizes that fit: {_listed(fits)}"
        )


def _check_divides(case: Case, dim: str) -> None:
    size, axis = getattr(case.model, dim), case.plan.rules[dim]
    if axis and size % case.mesh.axes[axis]:
        raise MeshError(_refusal(case, axis, dim, size))


def _check_stages(case: Case) -> None:
    if case.model.layers % case.mesh.pp:
        raise MeshError(_refusal(case, "pp", "layers", case.model.layers))


def _refusal(case: Case, axis: str, dim: str, size: int) -> str:
    fits = [n for n in divisors(size) if axis != "tp" or _tp_fits(case, n)]
    return (
        f"{axis}{case.mesh.axes[axis]} does not divide {dim}={size} of {case.model.name}; "
        f"{axis} sizes that fit: {_listed(fits)}"
    )


def divisors(size: int) -> list[int]:
    """Every size that it can be split into evenly, the smallest first."""
    small = [n for n in range(1, isqrt(size) + 1) if size % n == 0]
    return sorted({*small, *(size // n for n in small)})


def _tp_fits(case: Case, tp: int) -> bool:
    model, split = case.model, case.plan.rules
    dims = [dim for dim in ("ffn", "vocab", "expert_ffn", "shared_ffn") if split[dim]]
    heads = not split["heads"] or kv_heads(model.heads, model.kv_heads, tp) is not None
    return heads and all(getattr(model, dim) % tp == 0 for dim in dims)


def _check_sequence(case: Case) -> None:
    ways = {"cp": case.mesh.cp}
    if is_sequence_parallel(case.plan.rules):
        ways["tp"] = case.mesh.tp
    if case.seq % prod(ways.values()):
        split = " · ".join(f"{axis}{size}" for axis, size in ways.items() if size > 1)
        total = prod(ways.values())
        raise MeshError(
            f"seq {case.seq} cannot be split evenly over {split}; a multiple of {total} fits, "
            f"like {max(case.seq // total, 1) * total}"
        )


def _check_batch(case: Case) -> None:
    if case.mesh.pp == 1 and case.microbatches != 1:
        raise MeshError(
            f"microbatches is {case.microbatches}, but mesh {case.mesh.name} has no pipeline; with pp=1 it is 1"
        )
    ways = case.mesh.dp * case.mesh.ep * case.microbatches
    if case.batch % ways:
        near = max(case.batch // ways, 1) * ways
        raise MeshError(
            f"batch {case.batch} cannot be split evenly over dp{case.mesh.dp} · ep{case.mesh.ep} · {case.microbatches} "
            f"microbatches; a multiple of {ways} fits, like {near}{_near_microbatches(case)}"
        )


def _near_microbatches(case: Case) -> str:
    """`; for batch 64 16 or 32 microbatches`: the nearest numbers that divide the batch; empty where none does."""
    share, rest = divmod(case.batch, case.mesh.dp * case.mesh.ep)
    if case.mesh.pp == 1 or rest:
        return ""
    fitting = [number for number in range(1, share + 1) if share % number == 0]
    below = [number for number in fitting if number < case.microbatches][-1:]
    above = [number for number in fitting if number > case.microbatches][:1]
    return f"; for batch {case.batch} {' or '.join(map(str, below + above))} microbatches"


def _check_size(case: Case) -> None:
    model = case.model
    width = max(model.embed, model.heads * model.head_dim, model.ffn, model.expert_ffn, model.shared_ffn)
    numbers = case.batch * (case.seq + case.room) * max(model.layers * max(model.experts, 1) * width, model.vocab)
    if numbers > MOST_NUMBERS:
        raise MeshError(
            f"batch {case.batch} × {case.seq} tokens of {model.name} are {numbers:.1e} numbers in a step; at most "
            f"{MOST_NUMBERS:.1e} are counted"
        )


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes)) or "none"
