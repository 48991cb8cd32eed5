"""The programs of a run that are simulated: the default program of each framework and phase."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compare.report.model.program import ArmPrograms
from compare.report.programs import JudgedProgram
from compare.run.folder.load_run import JudgedRun, judge_run, read_run
from compare.timing.errors import TimingError
from compare.timing.metrics.verdicts import UNKNOWN_VERDICT, VERDICTS, verdict_shares
from compare.timing.network.graph.graph import COMPUTE
from compare.timing.network.programs.simulation import Program, Simulation, list_exposed

ALL_VERDICTS = (*VERDICTS, UNKNOWN_VERDICT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A program, and the verdict on the bytes of its collectives."""

    arm: str
    title: str
    phase: str
    cell: str
    topology: str
    program: Program
    shares: Mapping[str, Mapping[str, float]]
    """By collective, the fraction of its bytes of each verdict."""

    @property
    def name(self) -> str:
        return f"{self.title} {self.phase}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One program on one machine; ns of a rank's step, mean over ranks."""

    step_ns: float
    compute_ns: float
    exposed_ns: Mapping[str, float]
    """By verdict."""

    @property
    def total_exposed_ns(self) -> float:
        return sum(self.exposed_ns.values())

    @property
    def induced_ns(self) -> float:
        """Exposed time of bytes that no reference algorithm requires."""
        return self.exposed_ns["inflated"] + self.exposed_ns["induced"]


def load_subjects(folder: Path) -> list[Subject]:
    """The default programs of a run folder.  `TimingError` where none can be simulated."""
    judged = judge_run(read_run(folder))
    report = judged.report()
    by_key = {program.result.key: program for program in judged.programs}
    subjects = [
        _subject(judged, by_key.get((arm, phase, programs.default.cell)), programs)
        for phase, entry in report.phases.items()
        for arm, programs in entry.arms.items()
    ]
    usable = [subject for subject in subjects if subject is not None]
    if not usable:
        raise TimingError(f"{folder} has no compiled program that can be simulated")
    return usable


def _subject(judged: JudgedRun, program: JudgedProgram | None, programs: ArmPrograms) -> Subject | None:
    if program is None or program.module is None:
        return None
    arm, phase, cell = program.result.key
    table = verdict_shares(programs.default.collectives).set_index("collective")[list(VERDICTS)]
    return Subject(
        arm=arm,
        title=judged.run.titles.get(arm, arm),
        phase=phase,
        cell=cell,
        topology=program.case.topology.name,
        program=Program.of(program.module, program.rows, program.case.plan, name="/".join(program.result.key)),
        shares={
            str(name): {verdict: float(row[verdict]) for verdict in VERDICTS}
            for name, row in table.iterrows()
            if row.notna().all()
        },
    )


def simulate_subject(subject: Subject, simulation: Simulation) -> Outcome:
    """Raises `TimingError` where the machine does not fit the program."""
    played = subject.program.play(simulation)
    size = len(subject.program.devices)
    exposed = dict.fromkeys(ALL_VERDICTS, 0.0)
    for collective, ns in list_exposed(played, size).items():
        for verdict, share in subject.shares.get(collective, {UNKNOWN_VERDICT: 1.0}).items():
            exposed[verdict] += ns * share
    graph = subject.program.graph
    compute = [
        float(graph.table(rank).duration_ps[graph.table(rank).ops == COMPUTE].sum()) / 1000 for rank in range(size)
    ]
    return Outcome(
        step_ns=played.total_ns, compute_ns=sum(compute) / size / simulation.compute, exposed_ns=exposed
    )  # fmt: skip
