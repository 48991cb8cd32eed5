"""What one operand of one collective moves in one step.  Combined collectives are judged operand by operand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from compare.contract.row import round_half_up
from compare.hlo.collective import Collective, Operand
from compare.hlo.devices.axes import coordinates_by_axis
from compare.hlo.text.shapes import BITS

WEIGHT, CACHE, INPUT = "weight", "cache", "input"
SUMS = ("all-reduce", "reduce-scatter")

_INTEGERS = ("s", "u")


def is_integer(dtype: str) -> bool:
    """`s32`, `u8` …; predicates are neither integers nor floats."""
    return dtype.startswith(_INTEGERS)


def can_hold_ids(dtype: str) -> bool:
    """Integers of more than 8 bits: token ids and positions need them, quantized numbers do not."""
    return is_integer(dtype) and BITS[dtype] > 8


def is_float(dtype: str) -> bool:
    return dtype.startswith(("f", "bf"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandTraffic:
    """One operand of a collective, and its part of the collective's bytes."""

    collective: Collective
    operand: Operand
    exact_step_bytes: Fraction
    """Mean over devices."""
    step_bytes: int
    """The same, rounded: the operands of a collective add up to its `step_wire_bytes`."""
    roles: frozenset[str]
    """`weight`, `cache`, `input`: the roles of the parameters that it carries; of what is computed from weights alone
    `weight`."""
    vocab: int
    """The vocabulary's size, as the contract says it; 0: unknown."""
    token_width: int
    """The elements of one token, as the contract says it; 0: unknown."""
    every_axis: bool
    """Whether the collective runs over all axes of the mesh."""
    sizes: Mapping[str, int]
    """Axis -> size, outermost first."""

    def coordinate(self, device: int, axis: str) -> int:
        """The coordinate of a device on an axis; ids are row-major."""
        return coordinates_by_axis(tuple(self.sizes.items()))[axis][device]


def split_by_operand(
    collective: Collective,
    *,
    sizes: Mapping[str, int],
    roles: Mapping[int, str],
    vocab: int = 0,
    token_width: int = 0,
) -> Iterator[OperandTraffic]:
    """The traffic of each operand, in order; 0 bytes where the executions are unknown.

    `roles` maps parameter numbers of the program to `weight`, `cache` or `input`; an unnamed one
    counts as a weight, or as an input if it can hold ids.
    """
    exact = _exact_step_bytes(collective)
    total = sum(operand.payload_bytes for operand in collective.operands)
    all_axes = ",".join(axis for axis, size in sizes.items() if size > 1) == collective.axes
    previous, so_far = 0, Fraction(0)
    for operand in collective.operands:
        step_bytes = exact * Fraction(operand.payload_bytes, total) if total else Fraction(0)
        so_far += step_bytes
        rounded = round_half_up(so_far)
        yield OperandTraffic(
            collective=collective,
            operand=operand,
            exact_step_bytes=step_bytes,
            step_bytes=rounded - previous,
            roles=_roles(operand, roles),
            vocab=vocab,
            token_width=token_width,
            every_axis=all_axes,
            sizes=sizes,
        )
        previous = rounded


def _exact_step_bytes(collective: Collective) -> Fraction:
    """Bytes a step, mean over the devices, before rounding."""
    sent = _sent(collective)
    return sum(sent, Fraction(0)) / len(sent) if sent else Fraction(0)


def _sent(collective: Collective) -> list[Fraction]:
    return [times * Fraction(sends) for times, sends in _devices(collective)]


def _devices(collective: Collective) -> Sequence[tuple[int, Fraction]]:
    if collective.executions is None:  # nothing is known of what it moves
        return []
    return list(zip(collective.device_executions, collective.device_bytes, strict=True))


def _roles(operand: Operand, roles: Mapping[int, str]) -> frozenset[str]:
    unnamed = INPUT if can_hold_ids(operand.dtype) else WEIGHT
    carried = frozenset(roles.get(parameter, unnamed) for parameter in operand.parameters)
    return carried | {WEIGHT} if operand.of_weights else carried


def senders(traffic: OperandTraffic) -> dict[int, Fraction]:
    """Device -> bytes that it sends in one step, over all operands; devices that send nothing are left out."""
    sent = _sent(traffic.collective)
    return {device: amount for device, amount in enumerate(sent) if amount}
