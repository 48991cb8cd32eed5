"""Why one program computes longer than another, and what one spends above the floor of its plan.

The rules are docs/metrics.md, section 15: a reason is said only where a program without it, or the operations
themselves, account for most of the difference; else the operations are listed.
"""

from collections.abc import Mapping, Sequence
from math import prod

from compare.render.time.speed.operations import COPY, computing, operation_sentence, operation_words
from compare.render.time.timing_section import ProgramTiming, part_of, scopes_of
from compare.render.units import bytes_text, capitalize_first, list_text, ratio_text, time_text
from compare.report.controls import describe_control
from compare.report.grouping import sum_by
from compare.report.model.timing import Operation, ScopeWork
from compare.report.witnesses import WITNESSES

MOST_OVER_FLOOR = 2
"""A program that computes longer than this multiple of its floor is named, with the operations that make it so."""

_MOST = 0.5
"""The part of a difference beyond which its cause is known."""
_ALIKE = 0.01
"""Part of the longer step below which computing longer needs no words; and how near a ratio is to a whole number."""
_SMALL = 0.05
"""Part of a difference below which an operation, or a kind of work, is left out."""
_FAR = 2.0
"""Times that bytes grow beyond FLOPs from which on they are another cause."""
_FEW = 3
"""Operations in a sentence."""


def compare_compute(
    first: ProgramTiming, second: ProgramTiming, *, axes: Mapping[str, int], others: Sequence[ProgramTiming] = ()
) -> str:
    """`TorchXLA computes 164 ms longer than JAX: 165 ms in layer.attention.core …`; empty where they are alike.

    axes: of the mesh, with their sizes.  others: the programs beside them, their controls among them.
    """
    more, less = sorted((first, second), key=lambda timing: timing.times.compute_ns or 0, reverse=True)
    longer = _compute(more) - _compute(less)
    if longer <= _ALIKE * max(timing.times.step_ns or 0 for timing in (more, less)):
        return ""
    by_scope = {scope: _in_scope(more, scope) - _in_scope(less, scope) for scope in scopes_of([more, less])}
    if not by_scope:  # a timeline whose operations have no part of the model, as a simulated one
        return ""
    scope = max(by_scope, key=lambda scope: by_scope[scope])
    ratios = (("matrix_flops", "the FLOPs"), ("memory_bytes", "the bytes of memory"))
    compared = [f"{ratio_text(ratio)} {what}" for name, what in ratios if (ratio := _ratio(more, less, scope, name))]
    words = (
        f"{more.title} computes {time_text(longer)} longer than {less.title}: {time_text(by_scope[scope])} in {scope} "
        f"({time_text(_in_scope(more, scope))} against {time_text(_in_scope(less, scope))})"
    )
    controls = [timing for timing in others if _is_control(timing, more)]
    parts = (
        f"{words}, with {list_text(compared)}." if compared else f"{words}.",
        _kinds_of_work(more, less, scope, by_scope[scope]),
        _explain(more, less, scope, longer=longer, axes=axes, controls=controls),
    )
    return " ".join(filter(None, parts))


def _is_control(timing: ProgramTiming, default: ProgramTiming) -> bool:
    return timing.arm == default.arm and timing is not default and timing.cell not in WITNESSES


def _kinds_of_work(more: ProgramTiming, less: ProgramTiming, scope: str, difference: float) -> str:
    """`Memory traffic takes 113 ms of that, other work 41.2 ms and arithmetic 10.5 ms.`; empty where unknown."""
    ours, theirs = part_of(more, scope), part_of(less, scope)
    if ours is None or ours.arithmetic_ns is None or (theirs is not None and theirs.arithmetic_ns is None):
        return ""
    names = {"memory_ns": "memory traffic", "rest": "other work", "arithmetic_ns": "arithmetic"}
    parts = {words: _kind(ours, name) - _kind(theirs, name) for name, words in names.items()}
    shown = {words: amount for words, amount in parts.items() if amount > _SMALL * difference}
    longest = sorted(shown, key=lambda words: -shown[words])
    if not longest:
        return ""
    first, *rest = longest
    words = [f"{first} takes {time_text(shown[first])} of that", *(f"{name} {time_text(shown[name])}" for name in rest)]
    return f"{capitalize_first(list_text(words))}."


def _kind(part: ScopeWork | None, name: str) -> float:
    if part is None:
        return 0
    arithmetic, memory = part.arithmetic_ns or 0, part.memory_ns or 0
    return {"arithmetic_ns": arithmetic, "memory_ns": memory}.get(name, (part.compute_ns or 0) - arithmetic - memory)


def _explain(
    more: ProgramTiming,
    less: ProgramTiming,
    scope: str,
    *,
    longer: float,
    axes: Mapping[str, int],
    controls: Sequence[ProgramTiming],
) -> str:
    """The reason, if there is one; a control that removes most of the difference; else the operations."""
    best = min(controls, key=_compute, default=None)
    removed = _compute(more) - _compute(best) if best else 0
    words = []
    for gathered in sorted(_gathered(more, scope)):
        names = gathered.split(",")
        size, ratio = prod(axes.get(name, 0) for name in names), _ratio(more, less, scope, "matrix_flops")
        if ratio is None or size <= 1 or abs(ratio / size - 1) >= _ALIKE:
            continue
        without = [timing for timing in controls if gathered not in _gathered(timing, scope)]
        spared = _compute(more) - min(map(_compute, without), default=_compute(more))
        arithmetic = _kind(part_of(more, scope), "arithmetic_ns") - _kind(part_of(less, scope), "arithmetic_ns")
        if max(spared, arithmetic) > _MOST * longer:
            words.append(
                f"It gathers over {list_text(names)} there, and then each of the {size} devices computes what they "
                f"divide in {less.title}."
            )
            words += _beyond_the_work(more, less, scope, work=ratio)
            break
    if best and removed > _MOST * longer:
        left = _compute(best) - _compute(less)
        than = f"{time_text(abs(left))} {'longer' if left > 0 else 'shorter'} than {less.title}"
        words.append(f"`{best.cell}` ({describe_control(best.cell)}) computes {than}.")
    return " ".join(words or [_differing_operations(more, less, scope, longer)])


def _beyond_the_work(more: ProgramTiming, less: ProgramTiming, scope: str, *, work: float) -> list[str]:
    """What so many times the work does not explain, where bytes of memory grew far more: `The other 103 ms …`."""
    moved, expected = _ratio(more, less, scope, "memory_bytes"), work * _in_scope(less, scope)
    rest = _in_scope(more, scope) - expected
    if moved is None or moved <= _FAR * work or rest <= _SMALL * _in_scope(more, scope):
        return []
    return [
        f"{ratio_text(work)} the work would take {time_text(expected)}; the other {time_text(rest)} come with "
        f"{ratio_text(moved / work)} the bytes of memory per FLOP: {more.title}'s results there no longer fit in the "
        f"on-chip memory that holds them in {less.title}, and are written out and read back."
    ]


def _gathered(timing: ProgramTiming, scope: str) -> set[str]:
    """The axes over which it gathers there what the plan does not."""
    return {row.axes for row in timing.rows if row.scope == scope and row.kind == "all-gather" and row.induced_bytes}


def _differing_operations(more: ProgramTiming, less: ProgramTiming, scope: str, longer: float) -> str:
    """Those of one that the other has not, or not as long, of the part that differs most."""
    operations = (operation for operation in computing(less.section.operations) if operation.scope == scope)
    theirs = sum_by((_alike(operation), float(operation.time_ns or 0)) for operation in operations)
    found = [
        operation
        for operation in computing(more.section.operations)
        if operation.scope == scope and (operation.time_ns or 0) - theirs.get(_alike(operation), 0) > _SMALL * longer
    ]
    if not found:
        return ""
    return f"Its longest operations there: {'; '.join(map(operation_sentence, found[:_FEW]))}."


def _alike(operation: Operation) -> tuple[str, str]:
    return operation.opcode, operation.shape


def over_floor_sentence(timing: ProgramTiming) -> str:
    """`TorchXLA computes 8.86 × its floor (1.48 ms): 64 × copy of …`; empty up to MOST_OVER_FLOOR."""
    ratio, work = timing.over_floor, timing.section.work
    if ratio is None or ratio <= MOST_OVER_FLOOR or work is None:
        return ""
    words = f"{timing.title} `{timing.cell}` computes {ratio_text(ratio)} its floor ({time_text(work.floor_ns)})"
    excess = _excess(timing)
    named = sorted(excess, key=lambda operation: -excess[operation])[:_FEW]
    least = _SMALL * (_compute(timing) - (work.floor_ns or 0))
    parts = [_excess_words(operation, excess[operation]) for operation in named if excess[operation] > least]
    return f"{words}: {'; '.join(parts)}." if parts else f"{words}."


def _excess(timing: ProgramTiming) -> dict[Operation, float]:
    """The time of each operation above the floor, ns.

    The floor of a part of the model is of its products, and of the waits for what they read: they share it by their
    time.  What else runs (copies, elementwise work) is above it.
    """
    operations = computing(timing.section.operations)
    granted = sum_by((each.scope, float(each.time_ns or 0)) for each in operations if _is_granted(each))
    return {
        operation: (operation.time_ns or 0)
        * (max(0.0, 1 - _floor(timing, operation.scope) / granted[operation.scope]) if _is_granted(operation) else 1)
        for operation in operations
    }


def _is_granted(operation: Operation) -> bool:
    return bool(operation.matrix_flops) or operation.role == COPY


def _excess_words(operation: Operation, excess_ns: float) -> str:
    tensors = f" ({list_text(operation.tensors)})" if operation.tensors else ""
    moved = f" and move {bytes_text(operation.memory_bytes)}" if operation.memory_bytes else ""
    all_of_it = excess_ns > (1 - _ALIKE) * (operation.time_ns or 0)
    above = "" if all_of_it else f", {time_text(excess_ns)} above the floor there"
    return (
        f"{operation_words(operation)}{tensors} in {operation.scope} take {time_text(operation.time_ns)}{moved}{above}"
    )


def fastest_control(timing: ProgramTiming, others: Sequence[ProgramTiming]) -> str:
    """The change of a default program whose step is shortest, if it is shorter; else empty."""
    controls = [other for other in others if _is_control(other, timing) and other.times.step_ns]
    best = min(controls, key=lambda other: other.times.step_ns or 0, default=None)
    saved = (timing.times.step_ns or 0) - (best.times.step_ns or 0) if best else 0
    if best is None or saved <= _ALIKE * (timing.times.step_ns or 0):
        return ""
    return (
        f"{timing.title}'s step takes {time_text(best.times.step_ns)} in `{best.cell}`, {time_text(saved)} less: "
        f"{describe_control(best.cell)}."
    )


def _compute(timing: ProgramTiming) -> float:
    return timing.times.compute_ns or 0


def _in_scope(timing: ProgramTiming, scope: str) -> float:
    part = part_of(timing, scope)
    return (part.compute_ns or 0) if part else 0


def _floor(timing: ProgramTiming, scope: str) -> float:
    part = part_of(timing, scope)
    return (part.floor_ns or 0) if part else 0


def _ratio(more: ProgramTiming, less: ProgramTiming, scope: str, name: str) -> float | None:
    ours, theirs = part_of(more, scope), part_of(less, scope)
    amount = getattr(theirs, name) if theirs else None
    return ((getattr(ours, name) if ours else 0) or 0) / amount if amount else None
