"""The headline: one line per program, and one sentence with the main finding."""

from collections.abc import Iterator, Mapping, Sequence

from compare.report.attribution import NEARLY_ALL
from compare.report.controls import BY_HAND, describe_change
from compare.report.grouping import group_by, sum_by
from compare.report.model.codec import copy_fields
from compare.report.model.findings import Difference, HeadlineRow
from compare.report.model.program import ArmPrograms, ProgramReport, Totals
from compare.report.model.report import PhaseReport, Report
from compare.report.programs import GOOD
from compare.report.witness_bytes import shared_bytes
from compare.report.witnesses import WITNESSES
from meshes.case import Case

PLACES: Mapping[str, str] = {
    "embed": "token embedding",
    "pipeline.shift": "shift to the next pipeline stage",
    "norm": "norm",
    "layer.attention.qkv": "q, k and v projection",
    "layer.attention.core": "attention call",
    "layer.attention.out": "attention output projection",
    "layer.moe.route": "expert routing",
    "layer.moe.dispatch": "dispatch of tokens to experts",
    "layer.moe.experts": "experts",
    "layer.moe.combine": "combine of expert outputs",
    "layer.mlp.up": "MLP gate and up projection",
    "layer.mlp.down": "MLP down projection",
    "head": "vocabulary logits",
    "sample": "choice of the next token",
    "pipeline.collect": "return of the sampled ids",
}
"""Scope -> what is there, in the order of a step."""

_VERBS = {
    "all-gather": "all-gathers",
    "all-reduce": "all-reduces",
    "reduce-scatter": "reduce-scatters",
    "all-to-all": "reshuffles",
    "collective-permute": "permutes",
    "ragged-all-to-all": "reshuffles",
    "collective-broadcast": "broadcasts",
}


def headline_rows(
    arms: Mapping[str, ArmPrograms], *, required_bytes: int, titles: Mapping[str, str]
) -> tuple[HeadlineRow, ...]:
    """One row for each compiled program of a phase, each arm's default first."""
    return tuple(
        _row(arm, title_of(program, titles[arm]), program, required_bytes=required_bytes)
        for arm, programs in arms.items()
        for program in programs.compiled
    )


def title_of(program: ProgramReport, arm_title: str) -> str:
    """The title of a program: the arm's, or the witness's."""
    return WITNESSES[program.cell].title if program.cell in WITNESSES else arm_title


def _row(arm: str, title: str, program: ProgramReport, *, required_bytes: int) -> HeadlineRow:
    totals = program.totals
    sums = ("inherent", "inflated", "induced", "common", "framework_induced", "missing", "wire_bytes")
    return copy_fields(
        program,
        HeadlineRow,
        arm=arm,
        title=title,
        **{name: getattr(totals, name, None) for name in sums},
        ratio=totals.wire_bytes / required_bytes if totals and required_bytes else None,
        qualifier=_qualifier(totals) if totals else "",
    )


def _qualifier(totals: Totals) -> str:
    """How unknown and upper-bound rows qualify a total; with both it is neither bound."""
    words = {(True, True): "about", (True, False): "at least", (False, True): "at most"}
    return words.get((totals.unknown_rows > 0, totals.upper_bound_rows > 0), "")


def verdict_sentence(report: Report) -> str:
    """The main finding in one sentence; where nothing can be compared, which arm failed."""
    worst = max(_candidates(report), default=None)
    if worst is None or worst[0] == 0:
        return _no_difference(report)
    arm = worst[1]
    ratios = {name: _ratios(report, name) for name in report.arms if name != arm}
    others = "".join(f" ({report.arms[name].title}: {text})" for name, text in ratios.items() if text)
    first = f"{report.arms[arm].title} moves {_ratios(report, arm, noun=' what the plan needs')}"
    return f"{first}{others}; {_main_reason(report, arm)}.{_unserved(report)}{_failures(report)}"


def _candidates(report: Report) -> Iterator[tuple[int, str]]:
    """(framework-induced bytes, arm) of every compared program."""
    for phase in report.phases.values():
        for row in _compared(phase):
            if row.framework_induced is not None:
                yield row.framework_induced, row.arm


def _compared(phase: PhaseReport) -> list[HeadlineRow]:
    """The headline of the programs that were compared, one for each arm."""
    return [row for row in phase.headline if row.cell == phase.compared_cells.get(row.arm)]


def _ratios(report: Report, arm: str, *, cell: str | None = None, noun: str = "") -> str:
    """`1.9 × in prefill and 177 × in decode`, or `1.3 × in both`, of the compared programs or of one cell.

    `noun` follows the first number.
    """
    texts: dict[str, str] = {}
    for name, phase in report.phases.items():
        rows = phase.headline if cell else _compared(phase)
        row = next((row for row in rows if row.arm == arm and cell in (None, row.cell)), None)
        if row and row.wire_bytes is not None:
            texts[name] = _times(row, row.wire_bytes) + (_stands_for(row, phase) if cell is None else "")
            noun = noun if row.ratio is not None else ""
    if len(texts) > 1 and len(set(texts.values())) == 1:
        return f"{next(iter(texts.values()))}{noun} in both"
    return " and ".join(
        f"{times}{'' if index else noun} in {phase}" for index, (phase, times) in enumerate(texts.items())
    )


def _stands_for(row: HeadlineRow, phase: PhaseReport) -> str:
    """The cell's name in brackets, where it was compared in place of the arm's default and moves other bytes."""
    default = next(other for other in phase.headline if other.arm == row.arm)
    return f" ({row.cell})" if default.wire_bytes != row.wire_bytes else ""


def _times(row: HeadlineRow, wire_bytes: int) -> str:
    qualifier = f"{row.qualifier} " if row.qualifier else ""
    if not wire_bytes and row.ratio is None and not qualifier:
        return "nothing, which is all that the plan needs"
    if row.ratio is None:
        return f"{qualifier}{wire_bytes / 1e6:.3g} MB where the plan needs nothing"
    return f"{qualifier}{_three_digits(row.ratio)} ×"


def _three_digits(ratio: float) -> str:
    """As in the tables: `1.95`, `12.4`, `177`."""
    return f"{ratio:.{2 if ratio < 9.995 else 1 if ratio < 99.95 else 0}f}"


def _main_reason(report: Report, arm: str) -> str:
    """The main reason for an arm's excess bytes, over all phases.

    What one control removes, if that is most of the excess (one by hand removes everything and explains least: it comes
    last); else the scope and axes with the most bytes.
    """
    groups = [group for phase in report.phases.values() for group in phase.differences if group.arm == arm]
    beyond = sum(group.bytes for group in groups)
    groups = [group for group in groups if group.excess_bytes > 0]
    removed = _removed(groups)
    chosen = {cell: removed_groups for cell, removed_groups in removed.items() if not cell.endswith(BY_HAND)}
    cell, removed_groups = max((chosen or removed).items(), key=lambda entry: _sum(entry[1]), default=(None, []))
    if _sum(removed_groups) <= _sum(groups) / 2:
        cell, removed_groups = max(removed.items(), key=lambda entry: _sum(entry[1]), default=(None, []))
    main = removed_groups if _sum(removed_groups) > _sum(groups) / 2 else _largest_place(groups)
    title = report.arms[arm].title
    reason = f"{100 * _sum(main) / beyond:.0f} % of {title}'s overhead comes from {_what(main, report)}"
    if main is removed_groups and cell and (left := _ratios(report, arm, cell=cell)):
        reason += f"; {describe_change(cell)}, {title} moves {left}"
    return reason + _cited(report, arm, main)


def _cited(report: Report, arm: str, groups: Sequence[Difference]) -> str:
    """A witness that moves nearly all of the same bytes, and how many; empty where there is none."""
    for name, witness in WITNESSES.items():
        if witness.arm != arm or witness.control:
            continue
        shared_by_phase, group_bytes = {}, 0
        for phase, contents in report.phases.items():
            program = (contents.arms[arm].witnesses or {}).get(name) if arm in contents.arms else None
            phase_groups = [group for group in groups if any(group is other for other in contents.differences)]
            if program and phase_groups and (shared := shared_bytes(program, phase_groups)) is not None:
                shared_by_phase[phase] = shared
                group_bytes += sum(group.bytes for group in phase_groups)
        if shared_by_phase and sum(shared_by_phase.values()) > NEARLY_ALL * group_bytes:
            verb = _VERBS.get(max(groups, key=lambda group: group.excess_bytes).kind, "moves")
            amounts = " and ".join(f"{_megabytes(amount)} in {phase}" for phase, amount in shared_by_phase.items())
            return f"; {witness.description} ({name}) {verb} the same, {amounts}"
    return ""


def _megabytes(amount: int) -> str:
    return f"{amount / 1e6:,.0f} MB" if amount >= 1e8 else f"{amount / 1e6:.3g} MB"


def _removed(groups: Sequence[Difference]) -> dict[str, list[Difference]]:
    """Control cell -> the groups of which it removes nearly all."""
    cells = dict.fromkeys(cell for group in groups for cell in group.controls)
    return {
        cell: [group for group in groups if group.controls.get(cell, group.bytes) <= (1 - NEARLY_ALL) * group.bytes]
        for cell in cells
    }


def _largest_place(groups: Sequence[Difference]) -> list[Difference]:
    """The groups of the scope and axes with the most excess."""
    return max(group_by(groups, lambda group: (group.scope, group.axes)).values(), key=_sum)


def _sum(groups: Sequence[Difference]) -> int:
    return sum(group.excess_bytes for group in groups)


def _what(groups: Sequence[Difference], report: Report) -> str:
    """`its attention call, which all-gathers 3 tensors over tp in every layer`."""
    largest = max(groups, key=lambda group: group.excess_bytes)
    place = f"its {PLACES[largest.scope]}" if largest.scope in PLACES else "a part of no known scope"
    verb = _VERBS.get(largest.kind, "moves")
    if not largest.scope.startswith("layer."):
        return f"{place}, which {verb} data over {largest.axes} ({largest.sentence})"
    counts = []
    for phase in report.phases.values():
        like = [
            group
            for group in groups
            if group.scope == largest.scope
            and group.kind == largest.kind
            and any(group is other for other in phase.differences)
        ]
        counts += [sum(group.executions for group in like)] if like else []
    things = {_count(executions, report.case) for executions in counts}
    return f"{place}, which {verb} {things.pop() if len(things) == 1 else 'tensors'} over {largest.axes} in every layer"


def _count(executions: int, case: Case) -> str:
    """How many tensors each layer moves: executions ÷ (layers of a stage · ticks), where that is an integer."""
    stages = case.mesh.axes["pp"]
    times = case.model.layers // stages * (case.microbatches + stages - 1)
    if executions % times:
        return "tensors"
    return "a tensor" if executions == times else f"{executions // times} tensors"


def _no_difference(report: Report) -> str:
    """The sentence where no framework adds bytes that the other does not, with a note where none was compared."""
    ratios = {arm: text for arm in report.arms if (text := _ratios(report, arm, noun=" what the plan needs"))}
    if not ratios:
        return _nothing_to_judge(report)
    moved = "; ".join(f"{report.arms[arm].title} moves {text}" for arm, text in ratios.items())
    failed = _unserved(report) + _failures(report)
    if any(True for _ in _candidates(report)):
        return f"No framework adds bytes that the other does not: {moved}.{failed}"
    if len(report.arms) > 1:
        better = "".join(filter(None, (_best_control(report, arm) for arm in report.arms)))
        return f"{moved}{better}.{failed} {_not_compared(report, failed=failed)}"
    return f"{moved}.{failed}"


def _unserved(report: Report) -> str:
    """Which programs leave a part of the plan unserved, so that their ratio looks too good; empty where none does."""
    phases: dict[str, list[str]] = {}
    for name, phase in report.phases.items():
        for row in _compared(phase):
            programs = phase.arms[row.arm].compiled if row.arm in phase.arms else ()
            if any(program.totals and program.totals.unserved for program in programs if program.cell == row.cell):
                phases.setdefault(row.title, []).append(name)
    return "".join(
        f" {title} does not move all that the plan asks in {' and '.join(names)}." for title, names in phases.items()
    )


def _failures(report: Report) -> str:
    """A sentence on the programs that failed; empty where none did."""
    rows = [(name, row) for name, phase in report.phases.items() for row in phase.headline]
    bad = [f"{row.title} {row.cell} in {name} ({row.status})" for name, row in rows if row.status not in GOOD]
    return f" Missing: {', '.join(bad)}." if bad else ""


def _best_control(report: Report, arm: str) -> str:
    """`; with attention as einsum, TorchXLA moves 1.00 ×`: of the control that moves least, if that is less."""
    rows = [row for phase in report.phases.values() for row in phase.headline if row.arm == arm]
    moved = sum_by((row.cell, row.wire_bytes or 0) for row in rows if row.cell not in WITNESSES)
    default = next(iter(moved), "")
    others = [cell for cell in moved if cell != default and not cell.endswith(BY_HAND)]
    best = min((cell for cell in others if _is_complete(report, arm, cell)), key=moved.__getitem__, default=default)
    if not moved or moved[best] >= NEARLY_ALL * moved[default]:
        return ""
    return f"; {describe_change(best)}, {report.arms[arm].title} moves {_ratios(report, arm, cell=best)}"


def _is_complete(report: Report, arm: str, cell: str) -> bool:
    """Whether this program was compiled in every phase."""
    return all(
        any((row.arm, row.cell) == (arm, cell) and row.wire_bytes is not None for row in phase.headline)
        for phase in report.phases.values()
    )


def _not_compared(report: Report, *, failed: str) -> str:
    """The note that no bytes are called framework-induced, and why."""
    rows = sum(1 for phase in report.phases.values() for row in phase.headline if row.qualifier)
    why = f": in {rows} programs rows cannot be counted" if rows else ": no partitioner is common to their programs"
    return f"Note: the frameworks are not compared{'' if failed else why}."


def _nothing_to_judge(report: Report) -> str:
    failed = "; ".join(f"{arm.title}: {arm.error or arm.status}" for arm in report.arms.values())
    return f"No program could be judged. {failed}"
