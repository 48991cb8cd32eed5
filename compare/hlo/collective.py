"""What the reader finds: one row for each collective, with what the verdicts need to know of its data."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from compare.hlo.devices.groups import Groups
from compare.hlo.text.errors import HloError

COLLECTIVE_KINDS = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "ragged-all-to-all",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
"""As XLA spells them; in StableHLO with `_` for `-`."""

ORDERS = ("program", "step")
"""In which order rows are shown: as they stand in the program, or those with most bytes of a step first."""

NOT_RECORDED = "not recorded"
"""The origin of a row when no compiler pass was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One array that a collective carries."""

    dtype: str
    shape: tuple[int, ...]
    payload_bytes: int
    """By the kind's rule: of an all-gather the result's, else the operand's."""
    scope: str
    """The producer's; `?` if none is found."""
    parameters: frozenset[int]
    """ENTRY parameters that it is, through layout-only instructions."""
    constant: bool
    """A constant, through broadcasts and layout-only instructions."""
    steers_loop: bool
    """A counter or a predicate that a loop's condition reads."""
    of_weights: bool = False
    """Computed from weights alone, such as one that was scaled.  Known where the weights are."""
    feeds_product: bool = False
    """The result feeds a dot or convolution of the same scope directly (no dot or collective between): a gather, not
    part of a sum.  Computed only where the contract has a sum over these axes; of an all-reduce, only where it is
    `zero_elsewhere`."""
    zero_elsewhere: bool = False
    """Of an all-reduce: each device's parts are zero where another's are not, so that it gathers.  Computed only where
    the contract has a row over these axes."""
    added_up: bool = False
    """Of an all-gather or an all-to-all: the members' parts are added up where they come; of a permute: what it brings
    is added to another part.  Computed only where the contract has a sum over these axes."""
    steps_to_end: int | None = None
    """Of a sum: how many steps its result is from the end of its scope, with no product nor collective between; None:
    it does not get there.  Computed only where the contract has a sum over these axes."""
    earlier_hops: int | None = 0
    """Of a permute: how many permutes its data has come through; None: a loop carries it around."""
    arguments: tuple[str, ...] = ()
    """The names of its `parameters` that have one, such as `weights['up']`, in their order."""
    op_name: str = ""
    """Of one of several: the path of its own operation, as far as the text tells; the row has that of one of them."""
    source_line: str | None = None
    """Likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a pass did to an existing collective."""

    by: str
    """The pass, or `from A to B` where several ran between two recorded texts."""
    what: str
    """`merged split replaced moved copied`, `made async`, `made sync`."""

    def public(self) -> dict[str, str]:
        return {"pass": self.by, "what": self.what}


class ExpectedCollective(Protocol):
    """What the reader has to know of a row of the contract."""

    @property
    def scope(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def axes(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A loop around a collective."""

    name: str
    trip_count: int | None
    note: str = ""
    """Why the count is not believed, where the text gives two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective:
    """One row of the collectives table: `definitions.md` section 1 says what each column means."""

    name: str
    kind: str
    axes: str
    network: str
    form: str
    scope: str
    origin: str
    dtype: str
    groups: Groups
    """Device ids, of a permute pairs; of one slice's program, places in the slice."""
    executions: int | None
    executions_are: str
    payload_bytes: int
    wire_bytes: int
    step_wire_bytes: int | None
    source_line: str | None

    operands: tuple[Operand, ...]
    loops: tuple[Loop, ...]
    """Around it, outermost first."""
    device_executions: tuple[int, ...]
    """Of each device in one step; empty when unknown."""
    device_bytes: tuple[Fraction, ...]
    """Sent by each device in one execution."""
    in_exact_branch: bool
    """Inside a conditional whose predicate was evaluated per device, so that the count is exact."""
    from_parameters: bool
    """Any dataflow at all from an ENTRY parameter."""
    reaches_root: bool
    """Its result reaches ENTRY's root through layout-only instructions."""
    gathers_result_of: str | None
    """Of an all-gather: the name of the reduce-scatter whose result it collects."""
    line: int
    """Of the program's text, from 1."""
    text: str
    scattered_by: tuple[str, ...] = ()
    """Of an all-gather: the collectives that scatter (in any form) what it is made of, with no product between.  Known
    where the contract has an all-reduce over its axes."""
    reducer: str = ""
    """How it joins its members' parts: `add maximum minimum multiply and or xor`; empty where it reduces nothing, or in
    an unknown way."""
    part_of: str = ""
    """Of one step of a hierarchical collective over several slices: the axes of the whole collective."""
    changes: "tuple[Change, ...]" = ()
    """What passes did to it after its creation, in order."""
    mesh_groups: Groups = ()
    """Its groups, of a permute its pairs, as ids of devices of the mesh."""
    op_name: str = ""
    """The framework's path of the operation; empty where neither it nor anything near has one."""
    inferred: tuple[str, ...] = ()
    """Of `scope`, `op_name` and `source_line` those inferred from the nearest instruction."""
    caller: str | None = None
    """`file:line, function` of the innermost call that tells it from other rows of the same `source_line`."""

    def public(self) -> dict[str, object]:
        """The columns that other people's scripts rely on, in their order."""
        columns = {column: getattr(self, column) for column in PUBLIC}
        return columns | {"changes": [change.public() for change in self.changes], "inferred": list(self.inferred)}


def sort_rows(rows: Sequence[Collective], *, by: str) -> tuple[Collective, ...]:
    """The rows in one of `ORDERS`; by bytes, those of unknown executions first.  `HloError` for another word."""
    if by not in ORDERS:
        raise HloError(f"rows have no order {by!r}; there are {' and '.join(ORDERS)}")
    if by == ORDERS[0]:
        return tuple(rows)
    return tuple(sorted(rows, key=lambda row: (row.step_wire_bytes is not None, -(row.step_wire_bytes or 0))))


PUBLIC = (
    "name", "kind", "axes", "network", "form", "scope", "origin", "changes", "dtype", "groups", "executions",
    "executions_are", "payload_bytes", "wire_bytes", "step_wire_bytes", "source_line", "op_name", "inferred", "line",
    "caller",
)  # fmt: skip
