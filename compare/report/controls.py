"""Controls: the same program made in one other way, so that what goes away with it was that way's doing."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compare.report.model.findings import ControlPhase
from compare.report.model.program import ProgramReport
from compare.report.rows import excess_by_place

CHANGES = ("partitioner", "attention", "loop", "libtpu", "tracer", "style")
"""What a control can change, the least first: where several remove the same, this one says whose it was."""

BY_HAND = "explicit"
"""The style in which every collective is written by hand: what only this removes is the form's, not a choice of it."""


@dataclass(frozen=True, slots=True)
class _Words:
    """A cell in words: what it is, and how a sentence says that something is made so."""

    what: str
    how: str


_CELLS: Mapping[str, _Words] = MappingProxyType({
    "tpu": _Words("the program as it is by default", "under its own partitioner"),
    "tpu+gspmd": _Words("the same program under the GSPMD partitioner", "under the GSPMD partitioner"),
    "tpu+shardy": _Words("the same program under the Shardy partitioner", "under the Shardy partitioner"),
    "tpu+einsum": _Words("the same model with attention written as einsum", "written as einsum"),
    "tpu+torchax": _Words("the same PyTorch model traced by JAX, through torchax", "traced by JAX through torchax"),
    "tpu+pinned": _Words("the same model with its activations pinned", "with its activations pinned"),
    "tpu+weights": _Words("the same model with only weights, cache and inputs pinned", "with only its weights pinned"),
    "tpu+explicit": _Words("the same model with every collective written by hand", "with its collectives by hand"),
    "tpu+unrolled": _Words("the same model with layers and ticks written out", "with its loops written out"),
    "tpu+scan": _Words("the same model with layers and ticks in loops", "with its layers in a loop"),
})  # fmt: skip
_LIBTPU = "tpu+libtpu-"


def describe_control(cell: str) -> str:
    """What a cell is, as it stands in a sentence."""
    if cell.startswith(_LIBTPU):
        return f"the same program compiled by libtpu {cell.removeprefix(_LIBTPU)}"
    return _CELLS[cell].what if cell in _CELLS else "another cell"


def describe_change(cell: str) -> str:
    """The same before a verb: `written as einsum`."""
    if cell.startswith(_LIBTPU):
        return f"compiled by libtpu {cell.removeprefix(_LIBTPU)}"
    return _CELLS[cell].how if cell in _CELLS else cell


def list_changes(default: ProgramReport, control: ProgramReport) -> tuple[str, ...]:
    """In what a control differs from the default program of its arm, as both were compiled; words of `CHANGES`."""
    pairs = {
        "partitioner": (default.partitioner, control.partitioner),
        "attention": (default.attention, control.attention),
        "loop": (default.loop, control.loop),
        "libtpu": ((default.versions or {}).get("libtpu"), (control.versions or {}).get("libtpu")),
        "tracer": (default.tracer or "", control.tracer or ""),
        "style": (default.style, control.style),
    }
    return tuple(name for name in CHANGES if None not in pairs[name] and pairs[name][0] != pairs[name][1])


def compare_control(default: ProgramReport, control: ProgramReport) -> ControlPhase:
    """What one control did to the inflated and induced bytes: removed, added, left, in bytes a step.

    None where one of the two can't be counted.
    """
    if not is_counted(default) or not is_counted(control):
        return ControlPhase(
            status=control.status, error=control.error, default_bytes=None, control_bytes=None, removed_bytes=None,
            added_bytes=None,
        )  # fmt: skip
    before, after = excess_by_place(default.collectives), excess_by_place(control.collectives)
    less = [before.get(place, 0) - after.get(place, 0) for place in {**before, **after}]
    return ControlPhase(
        status=control.status,
        error=control.error,
        default_bytes=sum(before.values()),
        control_bytes=sum(after.values()),
        removed_bytes=sum(amount for amount in less if amount > 0),
        added_bytes=-sum(amount for amount in less if amount < 0),
    )


def is_counted(program: ProgramReport) -> bool:
    """Whether all of a program's bytes are known."""
    return program.totals is not None and not program.totals.unknown_rows
