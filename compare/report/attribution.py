"""Attribute the bytes beyond the plan: for each group of the default program, which controls remove it."""

import re
from collections.abc import Iterator, Mapping

from compare.report.controls import BY_HAND, is_counted, list_changes
from compare.report.differences import CauseGroup, GroupKey, group_by_cause
from compare.report.model.findings import CHANGES, Attribution, ControlEffect
from compare.report.model.program import ProgramReport

Groups = Mapping[GroupKey, CauseGroup]

NEARLY_ALL = 0.95
"""A control that removes this part of a group explains it."""
REDUCED_SHARE = 0.05
"""A control that removes less than this part does not affect the group."""

FORM, COMPILER, OPEN = "form", "compiler", "open"
"""Further owners: the SPMD form (only collectives written by hand avoid the bytes), the compiler, unattributed."""
_NO_PASS = re.compile(r"(program|partitioner|not recorded|unknown)(:.*)?")
"""Origins that name no pass after the partitioner."""


def attribute_groups(arms: Mapping[str, Mapping[str, ProgramReport]], *, default: str) -> tuple[Attribution, ...]:
    """One entry for each group of inflated or induced bytes of any arm's default program, largest first.

    arms: arm -> cell -> its program.  default: the name of the default cell.
    """
    entries = [
        entry
        for arm, cells in arms.items()
        if (program := cells.get(default)) and program.totals
        for entry in _of_arm(arm, program, cells, _bytes_left_by_hand(arms, default=default, but=arm))
    ]
    return tuple(sorted(entries, key=lambda entry: -entry.bytes))


def _of_arm(
    arm: str, default: ProgramReport, cells: Mapping[str, ProgramReport], by_hand: Mapping[GroupKey, int]
) -> Iterator[Attribution]:
    groups = group_by_cause(default.collectives)
    controls = {
        cell: (list_changes(default, program), group_by_cause(program.collectives))
        for cell, program in cells.items()
        if program is not default and is_counted(program)
    }
    for key, group in groups.items():
        effects = {cell: _effect(key, changes, groups, control) for cell, (changes, control) in controls.items()}
        removed = {cell: effect.removed_bytes / group.bytes for cell, effect in effects.items()}
        origins = group.by_origin(key.cause)
        owner, evidence = _owner(effects, removed, origins, hand=by_hand.get(key) == 0)
        yield Attribution(
            arm=arm,
            **key._asdict(),
            bytes=group.bytes,
            origins=origins,
            controls=effects,
            removed_by=tuple(cell for cell in effects if removed[cell] >= NEARLY_ALL),
            reduced_by=tuple(cell for cell in effects if REDUCED_SHARE <= removed[cell] < NEARLY_ALL),
            owner=owner,
            evidence=evidence,
            source_line=group.source_line,
        )


def _effect(key: GroupKey, changes: tuple[str, ...], default: Groups, control: Groups) -> ControlEffect:
    """How many bytes of a group a control leaves, and how many it removes.

    Bytes that only change their kind or cause there are not removed; nor are those that reappear in the same scope over
    other axes or with the other verdict: these reduce what was removed from the groups of the scope, in proportion.
    """
    left_bytes = control[key].bytes if key in control else 0
    gone = max(0, min(default[key].bytes - left_bytes, _bytes_at(default, key) - _bytes_at(control, key)))
    places = {(other.axes, other.verdict): other for other in (*default, *control) if other.scope == key.scope}
    drops = [_bytes_at(default, other) - _bytes_at(control, other) for other in places.values()]
    went, came = sum(drop for drop in drops if drop > 0), -sum(drop for drop in drops if drop < 0)
    removed = gone * max(0, went - came) // went if gone else 0
    return ControlEffect(changes=changes, left_bytes=left_bytes, removed_bytes=removed)


def _bytes_at(groups: Groups, key: GroupKey) -> int:
    """Bytes of the same scope, axes and verdict, whatever their kind and cause."""
    target = key.scope, key.axes, key.verdict
    return sum(group.bytes for other, group in groups.items() if (other.scope, other.axes, other.verdict) == target)


def _bytes_left_by_hand(
    arms: Mapping[str, Mapping[str, ProgramReport]], *, default: str, but: str
) -> dict[GroupKey, int]:
    """For each group that other arms' default programs have too: its bytes in their programs by hand."""
    left_bytes: dict[GroupKey, int] = {}
    for arm, cells in arms.items():
        hand = next((program for program in cells.values() if program.style == BY_HAND and is_counted(program)), None)
        program = cells.get(default)
        if arm == but or hand is None or hand is program or not program or not program.totals:
            continue
        groups = group_by_cause(hand.collectives)
        for key in group_by_cause(program.collectives):
            left_bytes[key] = left_bytes.get(key, 0) + _bytes_at(groups, key)
    return left_bytes


def _owner(
    effects: Mapping[str, ControlEffect], removed: Mapping[str, float], origins: Mapping[str, int], *, hand: bool
) -> tuple[str, str]:
    """The owner of a group, and the cell or origin that shows it; `hand`: another arm's program by hand removes it."""
    gone = {cell: effects[cell].changes for cell in effects if removed[cell] >= NEARLY_ALL}
    chosen = {cell: names for cell, names in gone.items() if not _is_by_hand(cell)}
    for name in CHANGES:
        for cell, names in chosen.items():
            if names == (name,):
                return name, cell
    # Another tracer also changes the partitioner: it owns what a control of that partitioner alone leaves.
    if any(effect.changes == ("partitioner",) for effect in effects.values()):
        for cell, names in chosen.items():
            if names == ("partitioner", "tracer"):
                return "tracer", cell
    latest = max(origins, key=lambda origin: origins[origin])
    if not _NO_PASS.fullmatch(latest):
        return COMPILER, latest
    # A program by hand removes everything: it shows the owner only beside a control that could have removed the group.
    tried = any("partitioner" in effect.changes for effect in effects.values())
    if by_hand := [cell for cell in gone if _is_by_hand(cell)]:
        return FORM if tried else OPEN, by_hand[0]
    if any(_is_by_hand(cell) for cell in effects):
        return COMPILER, latest
    if hand and tried:
        return FORM, ""
    strongest = max(removed, key=lambda cell: removed[cell], default="")
    return OPEN, strongest if strongest and removed[strongest] >= REDUCED_SHARE else ""


def _is_by_hand(cell: str) -> bool:
    return cell == f"tpu+{BY_HAND}"
