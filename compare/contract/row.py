"""A row of the contract: one collective that the plan requires.  Rows written by hand can judge any program."""

from dataclasses import dataclass
from fractions import Fraction
from math import floor


class JudgeError(ValueError):
    """A contract or a program that cannot be judged: what was read, and what would be right."""


FLOATS, INTEGERS, BOTH = "floats", "integers", "both"


TABLES = ("embed", "head")
"""Scopes whose weight is one table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractRow:
    """One collective of the reference algorithm, over one step; bytes as in docs/definitions.md."""

    scope: str
    kind: str
    axes: str
    """Comma-joined, outermost first."""
    executions: int
    payload_bytes: int
    """One execution, one device."""
    wire_bytes: int
    """One execution, mean over all devices."""
    step_wire_bytes: int
    formula: str = ""
    source: str = ""
    network: str = "ici"
    """The network of its groups: `ici` within a slice, `dcn` between slices, `ici+dcn` where the axis is in both."""
    carries: str = FLOATS
    """`floats`, `integers` (a row that moves ids) or `both`."""
    float_bytes: int = 2
    integer_bytes: int = 4
    devices: frozenset[int] | None = None
    """The devices that send; `None` is all."""
    ticks: int = 1
    """Of the pipeline's loop: m + pp − 1."""
    idle_ticks: int = 0
    """Ticks in which a given stage is idle: pp − 1."""
    dims: tuple[tuple[int, int], ...] = ()
    """(size, shards) of each sharded dim of its payload: where rounding up can add elements (the cause `padding`).  Set
    only in rows written by hand: sizes of a `Case` always divide."""
    hops: int = 0
    """Of a permute around a ring of n: n − 1, after which every device has seen all parts; 0: it is no ring."""
    vocab: int = 0
    """Of a row of hidden states at the head: a tensor with a dim of this size is logits, and cannot satisfy the row."""
    sums: tuple[tuple[str, int], ...] = ()
    """(reducer, elements) of the all-reduces that one execution consists of; empty: one, which adds all elements up."""
    token_elements: int = 0
    """Of an exchange of experts' places: the elements of all tokens of its group, which a gather or a sum in its place
    moves; 0: unknown, and not compared."""
    token_width: int = 0
    """Of the sums of layers, the last of which may need some tokens alone: the elements of one token; 0: all tokens."""
    of_weights: bool = False
    """Whether it puts together weights that the plan keeps split: served by gathers of weights, and by nothing else."""

    @property
    def elements(self) -> Fraction:
        """Of one execution; of a row of ids and floats, those of one of the two."""
        sizes = {FLOATS: self.float_bytes, INTEGERS: self.integer_bytes, BOTH: self.float_bytes + self.integer_bytes}
        return Fraction(self.payload_bytes, sizes[self.carries])


def wire_factor(kind: str, n: int) -> Fraction:
    """Bytes that a device in a group of `n` sends per byte of payload, in a bandwidth-optimal algorithm.

    The reader has its own table (`compare/hlo/emission/payload.py`), on purpose: an error in one cannot hide in both.
    """
    factors = {
        "all-reduce": Fraction(2 * (n - 1), n),
        "all-gather": Fraction(n - 1, n),
        "reduce-scatter": Fraction(n - 1, n),
        "all-to-all": Fraction(n - 1, n),
        "collective-broadcast": Fraction(n - 1, n),
        "collective-permute": Fraction(1),
    }
    if kind not in factors:
        raise JudgeError(f"no wire formula for {kind!r}; there is one for {', '.join(factors)}")
    return factors[kind]


def round_half_up(value: Fraction) -> int:
    """To the nearest integer, halves upwards.  The reader has its own, on purpose, like its wire factors."""
    return floor(value + Fraction(1, 2))
