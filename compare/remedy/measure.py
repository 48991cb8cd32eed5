"""The search for remedies: compile and judge the programs that it requests, several at a time, or use the cache."""

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compare.hlo.text.errors import HloError
from compare.passes import archive
from compare.remedy.remedies import (
    CODE,
    HAND,
    PLAN,
    TIME,
    Group,
    Remedy,
    apply_remedies,
    can_be,
    candidate_remedies,
    case_changes,
)
from compare.remedy.search import Asking, Measurement, Names, Search, is_better, is_faster
from compare.report.differences import group_by_cause
from compare.report.model.about import About
from compare.report.programs import JudgedProgram, ProgramResult, judge_program
from compare.report.rows import collective_row, sum_totals
from compare.run import scheduler
from compare.run.arms import ARMS, DEFAULT, Arm, Cell
from compare.run.cache import Cache
from compare.run.choices import TIMEOUT_S
from compare.run.folder import run_folder
from compare.run.results import Event, Outcome
from compare.schedule.schedule import model_step
from compare.timeline.errors import TimingError
from meshes.case import Case

MOST_NAMED = 3
"""The most changes that a cell's name lists."""
WORTH = 1e-4
"""Fraction of the plan's bytes below which changes of the plan are not tried."""
WITNESS = "jax"
"""The arm with an explicit form of every collective, which shows what the SPMD form costs an arm without one."""


@dataclass(slots=True, eq=False)
class ArmProgram:
    """One arm's program of one phase, and the measured remedies for its avoidable bytes."""

    arm: Arm
    case: Case
    remedies: dict[str, Remedy] = field(default_factory=dict)
    known: dict[Names, Measurement] = field(default_factory=dict)
    origins: dict[Group, dict[str, int]] = field(default_factory=dict)
    """Group of the default program -> origin -> bytes."""
    best: Names = frozenset()
    """The smallest set that leaves the fewest bytes, and makes no step longer."""
    fastest: Names = frozenset()
    """The same with the changes that save time alone."""
    refused: set[Names] = field(default_factory=set)
    """Sets that were not compiled because the limit was reached."""

    @property
    def base(self) -> Measurement:
        return self.known[frozenset()]

    def cell(self, names: Names) -> Cell:
        """The cell that compiles its program with these remedies."""
        words = case_changes(self.case, self.chosen(names))
        return Cell(f"{DEFAULT.name}+{self._short(names)}", words) if words else DEFAULT

    def _short(self, names: Names) -> str:
        """A short name of a set: a large one is named by the changes that are not in it."""
        code = [name for name, remedy in self.remedies.items() if remedy.kind == CODE]
        inside, outside = (
            [name.removeprefix("attention-") for name in code if (name in names) == is_inside]
            for is_inside in (True, False)
        )
        beside = [name for name in names if self.remedies[name].kind != CODE]
        if len(inside) > MOST_NAMED:
            inside = [f"all but {', '.join(outside)}" if outside else "all"]
        return "+".join([*inside, *beside])

    def chosen(self, names: Names) -> list[Remedy]:
        return [remedy for name, remedy in self.remedies.items() if name in names]

    def with_remedies(self, names: Names) -> Case:
        return apply_remedies(self.case, self.chosen(names))

    def fits(self, names: Names) -> bool:
        """Whether there is a case with these remedies."""
        return can_be(self.case, self.chosen(names))


class Measurer:
    """Compiles and judges programs, up to a limit."""

    def __init__(
        self,
        case: Case,
        *,
        cache: Cache,
        notify: Callable[[Event], None],
        most: int,
        timeout_s: float = TIMEOUT_S,
    ):
        self.case, self.cache, self.notify, self.most, self.timeout_s = case, cache, notify, most, timeout_s
        self.compiles = 0

    def make(self, wanted: Sequence[tuple[ArmProgram, Names]]) -> None:
        """Measure each of these sets for its program; sets beyond the limit of compiles are refused."""
        taken = [pair for pair in wanted if pair[1] not in pair[0].known]
        left = max(0, self.most - self.compiles)
        for program, names in taken[left:]:
            program.refused.add(names)
        taken = taken[:left]
        self.compiles += len(taken)
        cells = [(program.arm, program.case.phase, program.cell(names)) for program, names in taken]
        outcomes = scheduler.run_cells(self.case, cells, cache=self.cache, notify=self.notify, timeout_s=self.timeout_s)
        for (program, names), outcome in zip(taken, outcomes, strict=True):
            measurement, origins = _measured(program.with_remedies(names), outcome, run_case=self.case)
            program.known[names] = measurement
            if not names:
                program.origins = origins


def search(programs: Sequence[ArmProgram], making: Measurer) -> None:
    """Find each program's smallest set of remedies; all searches advance together, round by round."""
    making.make([(program, frozenset()) for program in programs])
    running: dict[ArmProgram, tuple[Search, Asking]] = {}
    for program in programs:
        if program.base.error:
            continue
        program.remedies = {
            remedy.name: remedy
            for remedy in candidate_remedies(program.case, program.base.groups, arm=program.arm.name)
        }
        program_search = Search(program.base, list(program.remedies.values()))
        running[program] = (program_search, program_search.steps())
    wanted = dict(_next(running, {}))
    while wanted:
        making.make(_in_turn(wanted))
        wanted = dict(_next({program: running[program] for program in wanted}, wanted))
    _agree(programs)
    _find_fastest([program for program in programs if not program.base.error], making)
    making.make(_in_turn({program: list(_beyond(program)) for program in programs if not program.base.error}))


def find_witnesses(programs: Sequence[ArmProgram], making: Measurer) -> list[ArmProgram]:
    """Extra programs of the arm that can write collectives by hand, to attribute what remains in an arm that cannot.

    For each phase with inflated bytes left: its default program and its program by hand.
    """
    arm = ARMS[WITNESS]
    silent = [
        program
        for program in programs
        if not program.base.error and program.known[program.best].of("inflated") and not _tells(program)
    ]
    if arm.missing() or any(program.arm is arm for program in programs):
        return []
    witnesses = []
    for selected in {selected.case.phase: selected for selected in silent}.values():
        hand = [
            remedy
            for remedy in candidate_remedies(selected.case, selected.base.groups, arm=arm.name)
            if remedy.kind == HAND
        ]
        witnesses += [ArmProgram(arm, selected.case, remedies={remedy.name: remedy}) for remedy in hand]
    making.make([(selected, names) for selected in witnesses for names in (frozenset(), frozenset(selected.remedies))])
    return [selected for selected in witnesses if frozenset() in selected.known]


def _find_fastest(programs: Sequence[ArmProgram], making: Measurer) -> None:
    """Try on top of each program's best set the changes that may save time, alone and then the good ones together."""
    making.make(_in_turn({program: list(list_timed(program).values()) for program in programs}))
    together: dict[ArmProgram, list[Names]] = {}
    for program in programs:
        by_site = _faster_by_site(program)
        program.fastest = list_timed(program)[by_site[0]] if by_site else program.best
        if len(by_site) > 1:
            together[program] = [_replace_sites(program, by_site)]
    making.make(_in_turn(together))
    for program, (names,) in together.items():
        if is_faster(program.known.get(names), program.known[program.fastest]):
            program.fastest = names


def _faster_by_site(program: ArmProgram) -> list[str]:
    """The fastest change of each site of those that save time on top of the best set, the most time first."""
    best = program.known[program.best]
    good = {
        name: program.known[names].step_ns or 0.0
        for name, names in list_timed(program).items()
        if is_faster(program.known.get(names), best)
    }
    by_site: dict[str, str] = {}
    for name in sorted(good, key=good.__getitem__):
        by_site.setdefault(program.remedies[name].site, name)
    return list(by_site.values())


def list_timed(program: ArmProgram) -> dict[str, Names]:
    """Each change that may save time, and the set that it makes of the best one; without those that fit no case."""
    sets = {name: _replace_sites(program, [name]) for name, remedy in program.remedies.items() if remedy.aim == TIME}
    return {name: names for name, names in sets.items() if program.fits(names)}


def _replace_sites(program: ArmProgram, chosen: Sequence[str]) -> Names:
    """The best set with these changes, in place of those of the same sites."""
    sites = {program.remedies[name].site for name in chosen}
    return frozenset(name for name in program.best if program.remedies[name].site not in sites) | set(chosen)


def _tells(program: ArmProgram) -> bool:
    """Whether its explicit collectives were measured."""
    return any(
        remedy.kind == HAND and not measurement.error for remedy, _, measurement in list_measured_beyond(program)
    )


def _agree(programs: Sequence[ArmProgram]) -> None:
    """Choose one set for all phases of an arm if it is as good as each phase's best: phases share their code."""
    for arm in {program.arm.name for program in programs}:
        members = [
            program
            for program in programs
            if program.arm.name == arm and not program.base.error and program.base.unneeded_bytes
        ]
        shared = [
            names
            for names in (members[0].known if members else ())
            if names and all(_as_good(member, names) for member in members)
        ]
        if shared:
            best = min(shared, key=lambda names: sum(member.known[names].step_ns or 0.0 for member in members))
            for member in members:
                member.best = best


def _as_good(program: ArmProgram, names: Names) -> bool:
    """Whether this set leaves no more bytes than the best, with no more changes."""
    if names not in program.known or not is_better(program.known[names], program.base):
        return False
    least = program.known[program.best].unneeded_bytes
    return program.known[names].unneeded_bytes <= least and len(names) <= len(program.best)


def _next(
    running: Mapping[ArmProgram, tuple[Search, Asking]], requested: Mapping[ArmProgram, list[Names]]
) -> Iterator[tuple[ArmProgram, list[Names]]]:
    """Send each search its measurements, and yield the sets that it requests next; a search that ends sets `best`."""
    for program, (_, steps) in running.items():
        answers = {names: program.known[names] for names in requested.get(program, ()) if names in program.known}
        try:
            yield program, steps.send(answers) if program in requested else next(steps)
        except StopIteration as end:
            program.best = end.value


def _in_turn(wanted: Mapping[ArmProgram, list[Names]]) -> list[tuple[ArmProgram, Names]]:
    """The first set of each program, then the second of each …, so that no program uses up the compiles."""
    longest = max((len(sets) for sets in wanted.values()), default=0)
    return [(program, sets[at]) for at in range(longest) for program, sets in wanted.items() if at < len(sets)]


def _beyond(program: ArmProgram) -> Iterator[Names]:
    """Further sets to try: explicit collectives, and changes of the plan if many bytes are left."""
    left = program.known[program.best]
    kinds = (HAND, PLAN) if left.unneeded_bytes >= WORTH * left.needed else (HAND,)
    for remedy in program.remedies.values() if left.unneeded_bytes else ():
        if remedy.kind in kinds:
            yield _on_top(program, remedy)


def _on_top(program: ArmProgram, remedy: Remedy) -> Names:
    """The remedy added to the best set if they are compatible, else alone."""
    both = program.best | {remedy.name}
    return both if program.fits(both) else frozenset((remedy.name,))


def list_measured_beyond(program: ArmProgram) -> Iterator[tuple[Remedy, Names, Measurement]]:
    """The remedies beyond the best set that were measured."""
    for remedy in program.remedies.values():
        names = _on_top(program, remedy)
        if remedy.kind != CODE and names in program.known:
            yield remedy, names, program.known[names]


def improves(program: ArmProgram, names: Names) -> bool:
    """Whether these remedies leave fewer bytes than the best set."""
    return names in program.known and is_better(program.known[names], program.known[program.best])


def _measured(case: Case, outcome: Outcome, *, run_case: Case) -> tuple[Measurement, dict[Group, dict[str, int]]]:
    """The measurement of one program, judged by the contract of its case, and its bytes by group and origin."""
    if outcome.status != "ok" or outcome.compiled is None:
        return Measurement(error=f"{outcome.status}: {outcome.error}"), {}
    packed = outcome.compiled / archive.FILE
    result = ProgramResult(
        arm=outcome.arm,
        phase=outcome.phase,
        cell=outcome.cell,
        status="ok",
        about=About.from_json(run_folder.merge_about(outcome, case=run_case)),
        hlo=gzip.decompress((outcome.compiled / "optimized.hlo.gz").read_bytes()).decode(),
        passes=packed.read_bytes() if packed.is_file() else None,
    )
    try:
        program = judge_program(case, result)
    except HloError as error:
        return Measurement(error=f"the program cannot be read: {error}"), {}
    if program.judgement is None:
        return Measurement(error="no program was compiled"), {}
    sums = sum_totals(program.judgement, program.contract)
    groups = group_by_cause(collective_row(verdict) for verdict in program.judgement.verdicts)
    measured = Measurement(
        groups={key: group.bytes for key, group in groups.items() if group.bytes},
        missing=sums.missing,
        needed=sums.inherent + sums.missing,
        unknown_rows=sums.unknown_rows,
        step_ns=_step_ns(program),
    )
    return measured, {key: group.by_origin(key.cause) for key, group in groups.items()}


def _step_ns(program: JudgedProgram) -> float | None:
    """The modelled step; unknown where it cannot be modelled."""
    assert program.module is not None
    try:
        steps = model_step(program.module, program.rows, program.case.plan).steps
    except (TimingError, HloError):
        return None
    return float((steps["start_ns"] + steps["duration_ns"]).max())
