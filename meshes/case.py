"""`Case`: the one input of both twins, of the contract, and of every report."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from meshes.dims import MEGATRON
from meshes.dims import rules as read_rules
from meshes.errors import MeshError
from meshes.files import Plan, read_mesh
from meshes.models import Model, model
from meshes.spec import AXES, MeshSpec
from meshes.topology import Topology

CHOICES: Mapping[str, tuple[str, ...]] = {
    "phases": ("prefill", "decode"),
    "dtype": ("bf16", "f32"),
    "style": ("pinned",),
    "loop": ("scan", "unrolled"),
    "attention": ("idiomatic", "einsum"),
    "partitioner": ("native", "gspmd"),
}
"""What each word of a case may be; the first is the default (of `phases`: all)."""

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
    dtype: str = "bf16"
    style: str = "pinned"
    loop: str = "scan"
    attention: str = "idiomatic"
    partitioner: str = "native"
    """`native` is the framework's own; `gspmd` asks JAX for the one that PyTorch/XLA uses."""

    def __post_init__(self) -> None:
        for name, words in CHOICES.items():
            asked = self.phases if name == "phases" else (getattr(self, name),)
            if not asked or any(word not in words for word in asked) or len(set(asked)) != len(asked):
                raise MeshError(f"{name} is {','.join(map(str, asked))!r}; choose from {', '.join(words)}")
        for name in ("batch", "seq", "microbatches"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise MeshError(f"{name} is {getattr(self, name)!r}; write a whole number from 1")
        _check_axes(self.mesh)
        _check_divides(self)
        _check_batch(self)

    @classmethod
    def read(
        cls, mesh: str, *, model_name: str = "llama-3.1-8b", microbatches: int | None = None, **options: Any
    ) -> Self:
        """The case that a command line asks for; `microbatches` is 4 with a pipeline, else 1."""
        plan = read_mesh(mesh)
        default = 4 if plan.mesh.pp > 1 else 1
        return cls(
            plan=plan,
            model=model(model_name),
            microbatches=microbatches if microbatches is not None else default,
            **options,
        )

    def at(self, **changes: Any) -> "Case":
        """The same case with some words changed: `case.at(phases=("decode",), attention="einsum")`."""
        return replace(self, **changes)

    @property
    def mesh(self) -> MeshSpec:
        return self.plan.mesh

    @property
    def topology(self) -> Topology:
        return self.plan.topology

    @property
    def phase(self) -> str:
        """The only phase of a case that was narrowed to one program."""
        if len(self.phases) != 1:
            raise MeshError(f"this case has the phases {', '.join(self.phases)}; a program is of one phase")
        return self.phases[0]

    @property
    def dtype_bytes(self) -> int:
        return DTYPE_BYTES[self.dtype]

    @property
    def cache_length(self) -> int:
        """Positions that the cache has room for."""
        return -(-(self.seq + 1) // CACHE_TILE) * CACHE_TILE

    @property
    def name(self) -> str:
        """Names the run folder: two cases share a name only if they are equal but for arms."""
        parts = [self.model.name, self.mesh.name, self.topology.name.replace(":", "-"),
                 f"b{self.batch}", f"s{self.seq}", f"m{self.microbatches}"]  # fmt: skip
        parts += [
            getattr(self, word) for word in CHOICES if word != "phases" and getattr(self, word) != CHOICES[word][0]
        ]
        parts += [] if self.phases == CHOICES["phases"] else ["+".join(self.phases)]
        parts += [f"{dim}-{axis or 'none'}" for dim, axis in self.plan.rules.items() if axis != MEGATRON[dim]]
        parts += (
            []
            if self.plan.order == AXES
            else ["order-" + "-".join(a for a in self.plan.order if self.mesh.axes[a] > 1)]
        )
        return "-".join(parts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mesh": {"name": self.mesh.name, "axes": self.mesh.axes},
            "topology": self.topology.name,
            "order": list(self.plan.order),
            "rules": dict(self.plan.rules),
            "model": self.model.to_dict(),
            **{word: getattr(self, word) for word in ("batch", "seq", "microbatches")},
            **{word: getattr(self, word) for word in CHOICES},
            "phases": list(self.phases),
        }

    def to_json(self) -> str:
        """The same text for equal cases, so that it can be a key."""
        return json.dumps(self.to_dict(), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read `to_json` again.  Raises `MeshError` on anything else."""
        try:
            read = json.loads(text)
            plan = Plan(
                MeshSpec(**read["mesh"]["axes"]),
                Topology.parse(read["topology"]),
                tuple(read["order"]),
                read_rules(read["rules"]),
            )
            words = {word: read[word] for word in ("batch", "seq", "microbatches", *CHOICES)}
            return cls(plan=plan, model=Model.from_dict(read["model"]), **{**words, "phases": tuple(words["phases"])})
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise MeshError(f"this is not a case: {error!r}") from None


def _check_axes(mesh: MeshSpec) -> None:
    for axis, why in (("cp", "context parallelism is not offered yet"), ("ep", "no preset has experts yet")):
        if mesh.axes[axis] > 1:
            raise MeshError(f"mesh {mesh.name} splits {axis}, but {why}; use dp, tp and pp")


def _check_divides(case: Case) -> None:
    sizes, at = case.model, case.plan.rules
    dims = {dim: getattr(sizes, dim) for dim in ("heads", "kv_heads", "ffn", "vocab")}
    for dim, size in dims.items():
        axis = at[dim]
        if axis and size % case.mesh.axes[axis]:
            split = [other for other in dims if at[other] == axis]
            fits = [n for n in range(1, size + 1) if all(dims[other] % n == 0 for other in split)]
            raise MeshError(_refusal(case, axis, dim, size, fits))
    if sizes.layers % case.mesh.pp:
        fits = [n for n in range(1, sizes.layers + 1) if sizes.layers % n == 0]
        raise MeshError(_refusal(case, "pp", "layers", sizes.layers, fits))


def _refusal(case: Case, axis: str, dim: str, size: int, fits: list[int]) -> str:
    return (f"{axis}{case.mesh.axes[axis]} does not divide {dim}={size} of {case.model.name}; "
            f"{axis} sizes that fit: {', '.join(map(str, fits))}")  # fmt: skip


def _check_batch(case: Case) -> None:
    if case.mesh.pp == 1 and case.microbatches != 1:
        raise MeshError(
            f"microbatches is {case.microbatches}, but mesh {case.mesh.name} has no pipeline; with pp=1 it is 1"
        )
    ways = case.mesh.dp * case.mesh.ep * case.microbatches
    if case.batch % ways:
        near = max(case.batch // ways, 1) * ways
        raise MeshError(
            f"batch {case.batch} does not divide by dp{case.mesh.dp} · ep{case.mesh.ep} · {case.microbatches} "
            f"microbatches; a multiple of {ways} fits, like {near}"
        )
