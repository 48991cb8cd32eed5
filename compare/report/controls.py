"""Controls: the same program compiled with one thing changed; what the change removes, it caused."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from compare.report.compiler_options import OPTIONS, option_of
from compare.report.model.findings import CHANGES, ControlPhase
from compare.report.model.program import ProgramReport
from compare.report.rows import excess_by_place

BY_HAND = "explicit"
"""The style in which every collective is written by hand: what only this removes is due to the SPMD form."""


@dataclass(frozen=True, slots=True)
class _Words:
    """A cell in words: a noun phrase, and the phrase that follows a verb."""

    what: str
    how: str


_CELLS: Mapping[str, _Words] = MappingProxyType(
    {
        "tpu": _Words("the program as it is by default", "under its own partitioner"),
        "tpu+gspmd": _Words("the same program under the GSPMD partitioner", "under the GSPMD partitioner"),
        "tpu+shardy": _Words("the same program under the Shardy partitioner", "under the Shardy partitioner"),
        "tpu+einsum": _Words("the same model with attention written as einsum", "with attention as einsum"),
        "tpu+cache-select": _Words(
            "the same model with the cache updated by a mask", "with the cache updated by a mask"
        ),
        "tpu+cache-slice": _Words("the same model with the cache updated by slices", "with cache updates by slices"),
        "tpu+cache-index": _Words("the same model with the cache updated by index", "with the cache updated by index"),
        "tpu+cache-written": _Words(
            "the same model with a cache written, then read", "with a cache written, then read"
        ),
        "tpu+cache-written-index": _Words(
            "the same model with a cache written by index, then read", "with a cache written by index, then read"
        ),
        "tpu+torchax": _Words("the same PyTorch model traced by JAX, through torchax", "traced by JAX through torchax"),
        "tpu+pinned": _Words("the same model with its activations pinned", "with its activations pinned"),
        "tpu+weights": _Words(
            "the same model with only weights, cache and inputs pinned", "with only its weights pinned"
        ),
        "tpu+explicit": _Words("the same model with every collective written by hand", "with hand-written collectives"),
        "tpu+typed": _Words("the same model with each sharding in its type", "with its shardings in types"),
        "tpu+unrolled": _Words("the same model with layers and ticks written out", "with its loops unrolled"),
        "tpu+scan": _Words("the same model with layers and ticks in loops", "with its layers in a loop"),
    }
)
_LIBTPU = "tpu+libtpu-"


def describe_control(cell: str) -> str:
    """What a cell is, as a noun phrase."""
    if cell.startswith(_LIBTPU):
        return f"the same program compiled by libtpu {cell.removeprefix(_LIBTPU)}"
    if option := OPTIONS.get(option_of(cell)):
        return f"the same program compiled {option.what}"
    return _CELLS[cell].what if cell in _CELLS else "another cell"


def describe_change(cell: str) -> str:
    """The same before a clause: `with attention as einsum`."""
    if cell.startswith(_LIBTPU):
        return f"compiled by libtpu {cell.removeprefix(_LIBTPU)}"
    if option := OPTIONS.get(option_of(cell)):
        return f"compiled {option.what}"
    return _CELLS[cell].how if cell in _CELLS else cell


def list_changes(default: ProgramReport, control: ProgramReport) -> tuple[str, ...]:
    """How a control differs from the default program of its arm, as both were compiled; words of `CHANGES`."""
    pairs = {
        "partitioner": (default.partitioner, control.partitioner),
        "attention": (default.attention, control.attention),
        "cache": (default.cache or "", control.cache or ""),
        "loop": (default.loop, control.loop),
        "libtpu": ((default.versions or {}).get("libtpu"), (control.versions or {}).get("libtpu")),
        "tracer": (default.tracer or "", control.tracer or ""),
        "style": (default.style, control.style),
    }
    return tuple(name for name in CHANGES if None not in pairs[name] and pairs[name][0] != pairs[name][1])


def compare_control(default: ProgramReport, control: ProgramReport) -> ControlPhase:
    """How one control changes the inflated and induced bytes, in bytes a step; `None` where one cannot be counted."""
    is_known = is_counted(default) and is_counted(control)
    before, after = excess_by_place(default.collectives), excess_by_place(control.collectives)
    drops = [before.get(place, 0) - after.get(place, 0) for place in {**before, **after}]
    return ControlPhase(
        status=control.status,
        error=control.error,
        default_bytes=sum(before.values()) if is_known else None,
        control_bytes=sum(after.values()) if is_known else None,
        removed_bytes=sum(drop for drop in drops if drop > 0) if is_known else None,
        added_bytes=-sum(drop for drop in drops if drop < 0) if is_known else None,
    )


def is_counted(program: ProgramReport) -> bool:
    """Whether all of a program's bytes are known."""
    return program.totals is not None and not program.totals.unknown_rows
