"""An adapter of a third-party model: how to build it, the names of its tensors, and the scopes of its modules."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.dims import MEGATRON
from meshes.process.errors import MeshError, NotOfferedError
from meshes.twins.layout import partition_axes
from meshes.weights import weights

Array = Any
"""The framework's own: `jax.Array` or `torch.Tensor`."""

Enter = Callable[[str], AbstractContextManager[Any]]
"""Opens a scope of the door's framework: what is traced in it bears the name."""

Axes = tuple[str | tuple[str, ...] | None, ...]
"""For each dim of a tensor the mesh axes that split it."""


class WitnessError(MeshError):
    """An adapter that does not fit the model that it adapts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One tensor that a program takes, before there is one."""

    name: str
    role: str
    """`weight`, `cache` or `input`."""
    dims: str
    """A word for each dim, from `meshes.dims`, `length` of a cache, or `_`; `heads.head_dim` is two of ours in one."""
    shape: tuple[int, ...]
    dtype: str
    """`bf16`, `f32` or `s32`."""
    declared: Axes | None = None
    """The axes that split it, where the model says so itself; else the case's rules say it by `dims`."""

    @property
    def split_dims(self) -> str:
        """For each dim the word of `meshes.dims` whose rule splits it."""
        outer = (dim.partition(".")[0] for dim in self.dims.split())
        return " ".join("_" if dim == "length" else dim for dim in outer)

    def axes(self, case: Case) -> Axes:
        """For each dim the axes of the case's mesh that split it."""
        return partition_axes(self.split_dims, case=case) if self.declared is None else self.declared


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One step of a third-party model, as a function of named tensors."""

    arguments: tuple[Argument, ...]
    """Weights, caches and inputs, each group in the order in which it is handed over."""
    step: Callable[[Mapping[str, Array]], tuple[Array, Mapping[str, Array]]]
    """All arguments by name -> the logits of each sequence's last token [batch vocab], and the new cache by name."""
    values: Mapping[str, np.ndarray[Any, np.dtype[Any]]] = field(default_factory=dict)
    """Of weights that no checkpoint has: tables that the model computes as it is built."""

    constraint: tuple[Any, str] | None = None
    """Module and name of the function by which the model requests a sharding; every call is counted."""

    def of_role(self, role: str) -> tuple[Argument, ...]:
        return tuple(each for each in self.arguments if each.role == role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A row of an adapter's table: which of its tensors is which of our weights."""

    path: str
    """A regular expression for the whole name of the tensor; a group in it is the number of the layer."""
    dims: str
    """The tensor's dims in order; `heads.head_dim` where it has two of ours in one.  The outer one is split."""
    weight: str = ""
    """The name in `meshes.weights`, or several, side by side in the split dim; empty where no checkpoint has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """One program of other people, adapted to a `Case` from outside: its source stays as it is."""

    name: str
    door: str
    """What traces it: `jax`, `torchax` or `torchxla`."""
    build: str
    """`module:function` from `(witness, case, enter)` to a `Program`.  Imported when called: it needs a framework."""
    families: tuple[str, ...]
    """Of `Model.family`."""
    owns: tuple[str, ...]
    """Parts of paths of the files that are the user's source: lines of these are reported, and no others."""
    packages: tuple[str, ...]
    """Its distributions; about.json records their versions."""
    tensors: tuple[Tensor, ...]
    """The first row that fits a tensor's name holds."""
    scopes: tuple[tuple[str, str], ...]
    """Regular expression for a module's whole path -> a word of `meshes.scopes`.  `path:method` names a method other
    than the module's call."""
    rope_theta: float | None = None
    """The only base of the rotary embedding that its source computes, unscaled, whatever its config says."""
    override: str = ""
    """`module:function` that changes torchax's environment before the trace: one operation, and not the model."""
    axis_names: Mapping[str, str] = field(default_factory=dict)
    """Our axis -> the model's own name of it."""

    def program(self, case: Case, *, enter: Enter) -> Program:
        """The step of the case's only phase, from shapes alone; `enter` opens the scopes of its parts.

        Raises `NotOfferedError`, with the reason, where this model cannot be written on that mesh.
        """
        check(self, case)
        built: Program = resolve(self.build)(self, case, enter)
        return built

    def row(self, name: str) -> tuple[Tensor, int | None]:
        """The table's row for a tensor, and the number of its layer.  Raises `WitnessError` where none fits."""
        for row in self.tensors:
            if match := re.fullmatch(row.path, name):
                return row, int(match[1]) if match.groups() else None
        raise WitnessError(f"{self.name} has a tensor {name} that no row of its table names; add one")

    def scope_of(self, path: str) -> str:
        """The part of the model that a module (or `module:method`) is; empty where the table does not say."""
        return next((scope for pattern, scope in self.scopes if re.fullmatch(pattern, path)), "")


def name_scope(call: Callable[..., Any], scope: str, *, enter: Enter) -> Callable[..., Any]:
    """The same function, in a scope."""

    @wraps(call)
    def named(*args: Any, **kwargs: Any) -> Any:
        with enter(scope):
            return call(*args, **kwargs)

    hide_frame(named)
    return named


def hide_frame(function: Any) -> None:
    """Its frame stands around the model's and is no line of anybody's: `<...>` is no file to those who read frames."""
    function.__code__ = function.__code__.replace(co_filename="<wirediff>")


def resolve(name: str) -> Any:
    """What `module:attribute` names, imported now."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def check(witness: Witness, case: Case) -> None:
    """Raise `NotOfferedError`, which names the reason, where the witness is no program of this case."""
    mesh, model = case.mesh, case.model
    other = {axis: size for axis, size in mesh.axes.items() if axis not in ("dp", "tp") and size > 1}
    if model.family not in witness.families:
        reason = f"is a model of the families {', '.join(witness.families)}, and {model.name} is {model.family}"
    elif other:
        reason = f"is split over dp and tp only, and this mesh has {', '.join(f'{a}={n}' for a, n in other.items())}"
    elif case.kv_heads != model.kv_heads:
        reason = f"holds its {model.kv_heads} KV heads once, and tp={mesh.tp} would need {case.kv_heads}"
    elif changed := _changed_rules(case):
        reason = f"is split by Megatron's plan, and this one changes {changed}"
    else:
        return
    raise NotOfferedError(f"{witness.name} {reason}")


def _changed_rules(case: Case) -> str:
    """The dims that the plan splits otherwise than Megatron's."""
    dims = ("heads", "kv_heads", "ffn", "vocab", "stream_seq")
    return ", ".join(dim for dim in dims if case.plan.rules[dim] != MEGATRON[dim])


def load_values(witness: Witness, program: Program, read: Callable[[str], Array], *, case: Case) -> dict[str, Array]:
    """Every weight of a program, from the weights of a case.

    read: name in `meshes.weights` -> the whole array, stacked over layers and stages.
    """
    specs = {spec.name: spec for spec in weights(case)}
    values: dict[str, Array] = {}
    for each in program.of_role("weight"):
        if each.name in program.values:
            values[each.name] = program.values[each.name]
            continue
        row, layer = witness.row(each.name)
        order = row.dims.replace(".", " ").split()
        parts = []
        for name in row.weight.split():
            name = name if name in specs else "embedding.table"  # a tied head
            dims, array = specs[name].dims.split(), read(name)
            if layer is not None:
                array, dims = array[layer, 0], dims[2:]
            parts.append(np.transpose(array, [dims.index(dim) for dim in order]))
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=order.index("expert_ffn"))
        values[each.name] = np.ascontiguousarray(joined.reshape(each.shape))
    return values


def kv_arguments(case: Case, names: Sequence[str], *, dims: str) -> tuple[Argument, ...]:
    """One layer's keys or values each, as long as the case's cache.

    dims: the words `batch kv_heads length head_dim`, in the model's order.
    """
    sizes = {
        "batch": case.batch,
        "kv_heads": case.model.kv_heads,
        "length": case.cache_length,
        "head_dim": case.model.head_dim,
    }
    shape = tuple(sizes[dim] for dim in dims.split())
    return tuple(Argument(name=name, role="cache", dims=dims, shape=shape, dtype=case.dtype) for name in names)


def input_arguments(case: Case) -> tuple[Argument, ...]:
    """The tokens, and in decode the position of the new one."""
    if case.phase == "prefill":
        return (Argument(name="tokens", role="input", dims="batch _", shape=(case.batch, case.seq), dtype="s32"),)
    return (
        Argument(name="tokens", role="input", dims="batch _", shape=(case.batch, 1), dtype="s32"),
        Argument(name="position", role="input", dims="", shape=(), dtype="s32"),
    )
