"""The programs of a run that are simulated: the default program of each framework and phase, and what is compared."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.verdicts import UNKNOWN_VERDICT, VERDICTS
from compare.network.graph.graph import COMPUTE
from compare.network.programs.exposed import list_exposed
from compare.network.programs.simulation import Program, Simulation
from compare.report.model.program import ProgramReport
from compare.report.programs import list_unread
from compare.run.folder.chip import find_chip
from compare.run.folder.load_run import JudgedRun, judge_run, read_run
from compare.run.folder.replace_folder import CASE
from compare.schedule.hardware import Hardware, name_slice
from compare.timeline.errors import TimingError
from meshes.devices.chip import Chip

Place = tuple[str, str]
"""(scope, axes)."""
AVOIDABLE = ("inflated", "induced")
ALL_VERDICTS = (*VERDICTS, UNKNOWN_VERDICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A program, and the verdict on the bytes of its collectives."""

    arm: str
    title: str
    phase: str
    cell: str
    topology: str
    chip: Chip
    """What the run's chips are taken for."""
    program: Program
    shares: Mapping[str, Mapping[str, float]]
    """By collective, the fraction of its bytes of each verdict."""
    places: Mapping[str, Place]
    """By collective, its scope and axes."""
    compared: "Subject | None" = None
    """What is compared with the other frameworks in its place, under the same partitioner; often itself.  `None` where
    nothing is."""

    @property
    def name(self) -> str:
        return f"{self.title} {self.phase}"

    @property
    def modelled_for(self) -> str:
        """`v5e:2x4 (calibrated on our pod, June)`."""
        return name_slice(self.topology, self.chip)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One program on one machine; ns of a rank's step, mean over ranks."""

    step_ns: float
    compute_ns: float
    exposed_ns: Mapping[str, float]
    """By verdict."""
    avoidable_ns: Mapping[Place, float]
    """Exposed time of inflated and induced bytes."""

    @property
    def total_exposed_ns(self) -> float:
        return sum(self.exposed_ns.values())

    @property
    def total_avoidable_ns(self) -> float:
        """Exposed time of bytes that no reference algorithm requires."""
        return sum(self.exposed_ns[verdict] for verdict in AVOIDABLE)


def load_subjects(folder: Path, *, chip: Path | None = None) -> tuple[list[Subject], tuple[str, ...]]:
    """The default programs of a run folder, and a line for each compiled program that could not be read.

    `TimingError` where none can be simulated.

    chip: a user's file instead of the one that the folder keeps.
    """
    if folder.is_dir() and not (folder / CASE).is_file():
        raise TimingError(f"{folder} is no run folder, it has no {CASE}; a Chakra trace (name.0.et …) is for replay")
    run = read_run(folder)
    known = find_chip(folder, run.case.topology.generation, chip)
    judged = judge_run(run.without_passes())
    report = judged.report()
    subjects = []
    for phase, entry in report.phases.items():
        for arm, programs in entry.arms.items():
            subject = _subject(judged, arm, phase, programs.default, known)
            if subject is None:
                continue
            cell = entry.compared_cells.get(arm)
            if cell is not None:
                compared = programs.cell(cell)
                if compared.totals is not None and compared.totals.framework_induced is not None:
                    other = subject if cell == subject.cell else _subject(judged, arm, phase, compared, known)
                    subject = replace(subject, compared=other)
            subjects.append(subject)
    unread = list_unread(judged.programs)
    if not subjects:
        raise TimingError("; ".join([f"{folder} has no compiled program that can be simulated", *unread]))
    return subjects, unread


def _subject(judged: JudgedRun, arm: str, phase: str, report: ProgramReport, chip: Chip) -> Subject | None:
    program = judged.find(arm, phase, report.cell)
    if program is None or program.module is None:
        return None
    table = verdict_shares(report.collectives).set_index("collective")[list(VERDICTS)]
    return Subject(
        arm=arm,
        title=judged.run.titles.get(arm, arm),
        phase=phase,
        cell=report.cell,
        topology=program.case.topology.name,
        chip=chip,
        program=Program.of(
            program.module,
            program.rows,
            program.case.plan,
            name="/".join(program.result.key),
            hardware=Hardware.of(chip),
        ),
        shares={
            str(name): {verdict: float(row[verdict]) for verdict in VERDICTS}
            for name, row in table.iterrows()
            if row.notna().all()
        },
        places={row.name: (row.scope, row.axes) for row in report.collectives},
    )


def simulate_subject(subject: Subject, simulation: Simulation) -> Outcome:
    """Raises `TimingError` where the machine does not fit the program."""
    simulated = subject.program.simulate(simulation)
    size = len(subject.program.devices)
    exposed = dict.fromkeys(ALL_VERDICTS, 0.0)
    avoidable: dict[Place, float] = {}
    for collective, ns in list_exposed(simulated, size).items():
        shares = subject.shares.get(collective, {UNKNOWN_VERDICT: 1.0})
        for verdict, share in shares.items():
            exposed[verdict] += ns * share
        if needless := ns * sum(shares.get(verdict, 0.0) for verdict in AVOIDABLE):
            place = subject.places[collective]
            avoidable[place] = avoidable.get(place, 0.0) + needless
    graph = subject.program.graph
    compute = [
        float(graph.table(rank).duration_ps[graph.table(rank).ops == COMPUTE].sum()) / 1000 for rank in range(size)
    ]
    return Outcome(
        step_ns=simulated.total_ns,
        compute_ns=sum(compute) / size / simulation.compute,
        exposed_ns=exposed,
        avoidable_ns=avoidable,
    )
