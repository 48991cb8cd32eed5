"""The programs of a run whose steps are modelled at other speeds: the default program of each framework and phase."""

from dataclasses import dataclass, replace
from pathlib import Path

from compare.energy.coefficients import energy_calibrated_on
from compare.energy.core_speed import Workload, core_shares
from compare.energy.voltage import GAMMAS, Voltage, parse_voltage
from compare.report.programs import JudgedProgram, list_unread
from compare.run.errors import WorkError
from compare.run.folder.chip import find_chip
from compare.run.folder.load_run import judge_run, read_run
from compare.run.folder.replace_folder import SIMULATION
from compare.run.folder.timelines import read_simulation
from compare.schedule.hardware import Hardware, times_calibrated_on
from meshes.devices.chip import Chip


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedSubject:
    """A program."""

    title: str
    arm: str
    phase: str
    cell: str
    workload: Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """The programs of a run, and what their chips are taken for."""

    programs: tuple[SpeedSubject, ...]
    chip: Chip
    voltage: Voltage
    slice_name: str
    failures: tuple[str, ...] = ()
    """A line for each compiled program of the run that could not be read."""

    @property
    def basis(self) -> str:
        """`Modelled for v5e:2x4 with the coefficients of v5e, not measured`."""
        on = [on for on in dict.fromkeys((times_calibrated_on(self.chip), energy_calibrated_on(self.chip))) if on]
        calibrated = f", calibrated on {' and '.join(on)}" if on else ""
        return f"Modelled for {self.slice_name} with the coefficients of {self.chip.title}{calibrated}, not measured"

    @property
    def voltage_words(self) -> str:
        """`V/V0 = 1 - 0.5 (1 - f/f0), assumed (γ 0 to 1); of static power 29% (6% to 70%) follow …`."""
        share, *ends = core_shares(self.chip, self.voltage)
        assumed = f", assumed (γ {GAMMAS[0]:g} to {GAMMAS[1]:g})" if self.voltage.is_assumed else ""
        span = f" ({min(ends):.0%} to {max(ends):.0%})" if ends else ""
        return f"{self.voltage}{assumed}; of static power {share:.0%}{span} follow the core's voltage"

    def to_json(self) -> dict[str, object]:
        """What the answers are of; each answer is a key of its own beside these."""
        share, *ends = core_shares(self.chip, self.voltage)
        return {
            "basis": self.basis,
            "voltage": self.voltage_words,
            "core_share_of_static": {"value": share, "low": min(ends, default=share), "high": max(ends, default=share)},
        }


def load_subjects(folder: Path, *, chip: Path | None) -> Subjects:
    """The default programs of a run folder.  `WorkError`, one line, where none can be modelled.

    chip: a user's file; `None`: that of the folder, else the generation's.
    """
    run = read_run(folder)
    if read_simulation(folder) is not None:
        raise WorkError(f"--frequency and --marginal are of a run's own machine; {folder} is simulated ({SIMULATION})")
    known = find_chip(folder, run.case.topology.generation, chip)
    judged = judge_run(run.without_passes())
    report = judged.report()
    hardware = Hardware.of(known)
    programs = tuple(
        _subject(program, judged.run.titles.get(arm, arm), hardware)
        for phase, entry in report.phases.items()
        for arm, cells in entry.arms.items()
        if (program := judged.find(arm, phase, cells.default.cell))
    )
    if not programs:
        raise WorkError("; ".join([f"{folder} has no program whose step was modelled", *list_unread(judged.programs)]))
    return Subjects(
        programs=programs,
        chip=known,
        voltage=parse_voltage(known.voltage),
        slice_name=run.case.topology.name,
        failures=list_unread(judged.programs),
    )


def _subject(program: JudgedProgram, title: str, hardware: Hardware) -> SpeedSubject:
    assert program.module is not None
    arm, phase, cell = program.result.key
    workload = Workload.of(program.module, program.rows, program.case.plan, hardware=hardware)
    return SpeedSubject(title=title, arm=arm, phase=phase, cell=cell, workload=workload)


def list_voltages(subjects: Subjects) -> list[Voltage]:
    """Every corner of what is assumed: of γ, and of the core's share of static power; one where nothing is."""
    given = subjects.voltage
    lines = [replace(given, gamma=gamma) for gamma in GAMMAS] if given.is_assumed else [given]
    return [replace(line, core_share=share) for line in lines for share in core_shares(subjects.chip, given)]
