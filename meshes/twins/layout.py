"""The verbs of a layout: how a decoder names what is placed and what is sent, in either framework.

The model calls nothing else for a collective.  What a verb does is its style's: in `pinned` it pins a sharding and XLA
inserts the collective, in `weights` it does nothing, in `typed` it changes the array's type, in `explicit` it sends.
`Array` stands for the framework's own array type; [...] gives its dims, in the words of `meshes.dims`.

Einsum letters, the same in both twins:

    everywhere       z stages, b batch, s seq, d embed, f ffn, m slots (microbatches), p parts, v vocab
    projections      h heads, k head_dim
    attention core   s queries, t keys, k KV heads, g query heads of a KV head, h head_dim
    experts          g groups, t tokens of a group, e experts, c slots of an expert, n slots of all groups, s shards
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any, Protocol

from meshes.case import Case
from meshes.dims import axes_of
from meshes.process.errors import MeshError
from meshes.variants import pins_scope

Array = Any
"""The framework's own: `jax.Array` or `torch.Tensor`."""

RING = "cp"
"""The axis around which the keys and values of a split sequence go."""

MAX_RANK = 5
"""PyTorch/XLA turns a sharding of more dims into another one, and says so in a log line only; the twins pin alike."""

_scope: ContextVar[str] = ContextVar("scope", default="")


class LayoutError(MeshError):
    """An array that a layout cannot place, or a verb that it does not offer."""


class Layout(Protocol):
    """Places arrays: names of dims in, sharded arrays out."""

    @property
    def case(self) -> Case: ...

    @property
    def dtype(self) -> Any:
        """Of weights, activations and cache."""
        ...

    def num_parts(self, dim: str) -> int:
        """Into how many parts the dim of an array is split."""
        ...

    def param(self, dims: str) -> Any:
        """A weight with these dims."""
        ...

    def scope(self, name: str) -> AbstractContextManager[None]:
        """The part of the model, from `meshes.scopes`, that collectives in here are attributed to."""
        ...

    def as_global(self, step: Callable[..., Any], *, takes: Any, gives: Any) -> Callable[..., Any]:
        """The step of global arrays, built from the step of the arrays that this layout hands to the model."""
        ...

    def place(self, x: Array, dims: str) -> Array:
        """Pin an activation's sharding."""
        ...

    def gather_sequence(self, x: Array) -> Array:
        """The tokens that a block reads: [stages stream_batch stream_seq embed] -> [stages batch seq embed]."""
        ...

    def reduce_output(self, x: Array, *, over: str) -> Array:
        """The sum over the shards of the dim `over`: [stages batch seq embed] -> the stream."""
        ...

    def lookup(self, table: Array, tokens: Array) -> Array:
        """Rows of a table [vocab embed] by id [slots batch seq] -> [slots, the stream]."""
        ...

    def positions(self, first: Array, count: int) -> Array:
        """The position of each of `count` tokens, the first's given: [seq]."""
        ...

    def cache_positions(self) -> Array:
        """The position that each place of a cache is for: [length]."""
        ...

    def cache_index(self, position: Array) -> Array:
        """The place of a position in a cache."""
        ...

    def max_over_parts(self, x: Array) -> Array:
        """The maximum over the parts of a split cache."""
        ...

    def sum_over_parts(self, x: Array) -> Array:
        """The sum over the parts of a split cache."""
        ...

    def ring(self, block: Callable[..., Array], *, takes: tuple[str, ...], gives: str) -> Callable[..., Array]:
        """`block(rank, hop, *parts)` on each device's own parts of arrays with these dims.

        rank: which part of the sequence this device has.  hop(x): the x of the part before, around the ring.
        """
        ...

    def to_experts(self, x: Array) -> Array:
        """Each group's slots at every expert, to that expert: [stages _ groups slots embed] -> by experts."""
        ...

    def from_experts(self, x: Array) -> Array:
        """The experts' output, back: [stages experts routed shards embed] -> [stages _ groups shards embed]."""
        ...

    @property
    def ticks(self) -> Array:
        """The ticks of the pipeline: [microbatches + stages − 1]."""
        ...

    @property
    def tick_form(self) -> str:
        """How ticks are written: in a `scan`, or `unrolled`."""
        ...

    def cache_slot(self, tick: Array) -> Array:
        """The slot of the cache that every stage uses in that tick."""
        ...

    def on_first_stage(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)`, needed on the first stage alone."""
        ...

    def on_active_stages(self, run: Callable[[Any], Any], carry: Any, *, tick: Array) -> Any:
        """`run(carry)`, needed on the stages that hold a microbatch in that tick."""
        ...

    def on_last_stage(self, run: Callable[[Any], Any], x: Any) -> Any:
        """`run(x)`, needed where the last tokens come out of the last stage."""
        ...

    def shift(self, state: Array, taken: Array, *, tick: Any) -> Array:
        """Each stage's state to the next stage, `taken` to the first: the stream in, the stream out."""
        ...

    def last_tokens(self, x: Array) -> Array:
        """The last token of each part of a sequence: [slots, the stream] -> [slots stages batch parts embed]."""
        ...

    def sample(self, logits: Array) -> Array:
        """The greedy choice: [slots stages batch parts vocab] -> ids [slots stages batch parts]."""
        ...

    def collect(self, token_ids: Array) -> Array:
        """The ids that the last stage chose for the last part of each sequence: [slots batch]."""
        ...


@contextmanager
def enter_scope(name: str) -> Iterator[None]:
    """In here activations are pinned as the case has it for the scope `name`."""
    token = _scope.set(name)
    try:
        yield
    finally:
        _scope.reset(token)


def is_pinned(case: Case) -> bool:
    """Whether an activation is pinned in the innermost scope."""
    return pins_scope(case, _scope.get())


def partition_axes(dims: str, *, case: Case) -> tuple[str | tuple[str, ...] | None, ...]:
    """For each dim, `_` for one that is never split, the mesh axes that split it; at most `MAX_RANK` dims."""
    axes = axes_of(dims, rules=case.rules)
    if len(axes) > MAX_RANK:
        raise LayoutError(f"{dims!r} names {len(axes)} dims; an array is sharded over at most {MAX_RANK}")
    return axes


def count_parts(dim: str, *, case: Case) -> int:
    """Into how many parts the rules of the case split a dim."""
    axes = (case.rules[dim] or "").split(",")
    return prod(case.mesh.axes[axis] for axis in axes if axis)


def check_dims(dims: str, *, rank: int) -> None:
    """Raise `LayoutError` where the dims are not as many as the array has."""
    if rank != len(dims.split()):
        raise LayoutError(f"{dims!r} names {len(dims.split())} dims; the array has {rank}")
