"""The timelines of a run's programs: measured ones from profiles, modelled ones for compiled programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compare.contract.floor import count_floor
from compare.contract.useful_flops import count_useful_flops
from compare.energy.step_energy import compare_energy, list_coefficients, measure_energy
from compare.hlo.text.errors import HloError
from compare.hlo.text.metadata import SourceNames
from compare.metrics.alignment.timeline_diff import timeline_diff
from compare.metrics.metrics_section import build_section
from compare.metrics.operations import ProgramText
from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.work import Peaks
from compare.network.machines.tpu import tpu_machine
from compare.network.programs.simulation import Program, Simulation
from compare.profile.join import profile
from compare.profile.join.event_work import add_network_work, add_work
from compare.report.build import lay_out_mesh
from compare.report.model.energy import EnergyDifference, StepEnergy
from compare.report.model.program import ArmPrograms, ProgramReport
from compare.report.model.report import PhaseReport, Report
from compare.report.model.timing import Side, TimeDifference, Timing
from compare.report.programs import JudgedProgram, Key
from compare.run.errors import WorkError
from compare.run.folder.chip import find_chip
from compare.run.folder.replace_folder import SIMULATION
from compare.run.folder.untrusted_paths import is_inside
from compare.run.tasks import PROFILES
from compare.schedule.hardware import Hardware, times_calibrated_on
from compare.schedule.schedule import model_step
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.errors import TimingError
from compare.timeline.timeline import Timeline, plain_strings
from compare.timeline.tracks.numbers import to_ratio
from meshes.devices.chip import Chip
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.one_line import one_line

NO_JOULES = "no joules"
MOST_STRETCHES = 20
"""Most unmatched intervals in a report."""


@dataclass(frozen=True, slots=True)
class Timelines:
    """The timelines of programs, by arm, phase and cell."""

    by_key: Mapping[Key, Timeline]
    errors: Mapping[Key, str]
    """Why a program has no timeline, one line."""
    simulated: bool = False
    """Whether the compiled programs were simulated on the machine of the folder's `simulation.json`."""
    chip: Chip | None = None
    """What the chips of its compiled programs are taken for; `None`: there are none."""


@plain_strings()
def build_timelines(programs: Sequence[JudgedProgram], *, folder: Path, chip: Path | None = None) -> Timelines:
    """The timelines of all readable programs.

    folder: the run folder, with the profiles of executed programs.  chip: a user's file instead of the folder's.
    """
    timelines, errors = dict[Key, Timeline](), dict[Key, str]()
    simulation = read_simulation(folder)
    rows = [program.case.topology.generation for program in programs if not program.result.executed]
    known = find_chip(folder, rows[0], chip) if rows else None
    for program in programs:
        if program.module is None:
            continue
        key = program.result.key
        try:
            timelines[key] = (
                _model(program, simulation, known)
                if known and not program.result.executed
                else _read_measured(program, folder)
            )
        except (TimingError, HloError, OSError) as error:
            errors[key] = one_line(str(error).replace(f"{folder}/", ""))
    return Timelines(timelines, errors, simulation is not None, known)


def read_simulation(folder: Path) -> Simulation | None:
    """The machine on which a run folder's compiled programs are simulated; `None`: modelled for their own slice."""
    path = folder / SIMULATION
    if not is_inside(folder, path):
        return None
    try:
        return Simulation.from_json(read_json(path))
    except (MeshError, TimingError) as error:
        raise WorkError(f"{path} cannot be read: {error}") from None


def _model(program: JudgedProgram, simulation: Simulation | None, chip: Chip) -> Timeline:
    assert program.module is not None
    hardware = Hardware.of(chip)
    if simulation is not None:
        name = "/".join(program.result.key)
        simulated = Program.of(program.module, program.rows, program.case.plan, name=name, hardware=hardware)
        return _with_work(simulated.timeline(simulation), program, simulation)
    timeline = model_step(program.module, program.rows, program.case.plan, hardware=hardware)
    on = times_calibrated_on(chip)
    return replace(timeline, label=timeline.label + (f", calibrated on {on}" if on else ""))


def _with_work(timeline: Timeline, program: JudgedProgram, simulation: Simulation) -> Timeline:
    """Joules are of the chips that the program was compiled for: on a slice of their shape, at whatever rates."""
    plan = program.case.plan
    own = tpu_machine(plan.topology.name)
    shapes = [[(dim.kind, dim.size) for dim in machine.dims] for machine in (own, simulation.machine)]
    if shapes[0] != shapes[1] or simulation.repeat > 1:
        note = f"{NO_JOULES}: {simulation.machine.name} has another shape than {own.name}, whose coefficients are known"
        events = timeline.events.drop(columns=list(WORK_COLUMNS), errors="ignore")
        return replace(timeline, events=events, notes=(*timeline.notes, note))
    note = f"joules are by the coefficients of {own.name}: a byte over a faster link is taken to cost the same"
    return replace(add_network_work(timeline, program.rows, plan), notes=(*timeline.notes, note))


def _read_measured(program: JudgedProgram, folder: Path) -> Timeline:
    key = program.result.key
    files = sorted(file for file in folder.joinpath(*key).glob(PROFILES) if is_inside(folder, file))
    if not files:
        raise TimingError(f"its profile is not there: {'/'.join(key)}/{PROFILES}")
    axes = program.case.mesh.split_axes
    timeline = profile.read_profile(files, axes=axes, hlo=program.module, label=program.about.label)
    assert program.module is not None
    on_tpu = (program.about.executed or {}).get("platform") == "tpu"
    return add_work(timeline, program.module, program.rows, program.case.plan if on_tpu else None)


@plain_strings()
def add_times(report: Report, programs: Sequence[JudgedProgram], times: Timelines) -> Report:
    """Adds to a report the times of its programs, or why they have none, and the time differences of each phase.

    programs: all those of one phase, or of several; other phases stay as they are.
    """
    by_key = {program.result.key: program for program in programs}
    phases = dict(report.phases)
    for name in dict.fromkeys(program.result.phase for program in programs):
        phase = report.phases[name]
        arms = {arm: _with_times(arm_programs, arm, name, by_key, times) for arm, arm_programs in phase.arms.items()}
        differences = _differences(name, phase, times.by_key, axes=tuple(report.mesh.groups))
        of_energy = _energy_difference(arms, phase.compared_cells, times.chip)
        phases[name] = replace(phase, arms=arms, time_differences=differences, energy_difference=of_energy)
    has_energy = any(program.energy for phase in phases.values() for arm in phase.arms.values() for program in arm)
    model = list_coefficients(times.chip) if times.chip and has_energy else None
    return replace(report, phases=phases, energy_model=model)


def _with_times(
    programs: ArmPrograms, arm: str, phase: str, by_key: Mapping[Key, JudgedProgram], times: Timelines
) -> ArmPrograms:
    def timed(program: ProgramReport) -> ProgramReport:
        key = arm, phase, program.cell
        if key in times.by_key:
            timing = _timing(by_key[key], program, times)
            totals = program.totals and replace(program.totals, compute_over_floor=_over_floor(timing))
            energy = _energy(by_key[key], program, timing, times)
            return replace(program, timing=timing, totals=totals, energy=energy)
        return replace(program, timing_error=times.errors.get(key))

    witnesses = programs.witnesses
    return replace(
        programs,
        default=timed(programs.default),
        witnesses=witnesses and {cell: timed(program) for cell, program in witnesses.items()},
        controls={cell: timed(program) for cell, program in programs.controls.items()},
        profiles={cell: timed(program) for cell, program in programs.profiles.items()},
    )


def _timing(program: JudgedProgram, entry: ProgramReport, times: Timelines) -> Timing:
    timeline, chip = times.by_key[program.result.key], times.chip or program.case.topology.generation
    # Peaks of a data sheet say nothing of a machine that need not exist.
    has_peak = entry.platform != "cpu" and not times.simulated
    return build_section(
        timeline,
        rows=entry.collectives,
        mesh=lay_out_mesh(program.case),
        microbatches=program.case.microbatches,
        link_bytes_per_s=chip.ici_link_bytes_per_s if has_peak else None,
        useful_flops=count_useful_flops(program.case) / program.case.mesh.num_devices,
        peaks=_peaks(chip) if has_peak else None,
        reached=_reached(Hardware.of(chip)) if has_peak else None,
        floor=count_floor(program.case),
        # Events of a CPU say nothing of what takes a TPU's time.
        text=None if entry.platform == "cpu" else _text(program),
    )


def _text(program: JudgedProgram) -> ProgramText | None:
    if program.module is None:
        return None
    parameters = program.about.parameters or ()
    return ProgramText(
        program.module,
        parameters={parameter.index: parameter.name or parameter.role for parameter in parameters},
        caches=frozenset(parameter.index for parameter in parameters if parameter.role == "cache"),
        names=SourceNames.of(owns=program.about.owns or ()),
    )


def _over_floor(timing: Timing) -> float | None:
    """Of a modelled program; a measured one ran at other rates than the floor's."""
    floor_ns = timing.work.floor_ns if timing.work else None
    return to_ratio(timing.per_step.compute_ns, floor_ns) if timing.source == "modelled" else None


def _reached(hardware: Hardware) -> Peaks:
    """The rates at which the schedule model computes and moves bytes."""
    return Peaks(flops_per_s=hardware.flops_per_ns * 1e9, memory_bytes_per_s=hardware.hbm_bytes_per_ns * 1e9)


def _peaks(chip: Chip) -> Peaks:
    """Of one device, by the data sheet."""
    return Peaks(flops_per_s=chip.bf16_flops / chip.devices, memory_bytes_per_s=chip.hbm_bytes_per_s / chip.devices)


def _energy(program: JudgedProgram, entry: ProgramReport, timing: Timing, times: Timelines) -> StepEnergy | None:
    if times.chip is None or program.result.executed:
        return None
    case, chip = program.case, times.chip
    return measure_energy(
        times.by_key[program.result.key],
        timing.per_step,
        timing.by_verdict,
        verdict_shares(entry.collectives),
        chip,
        per_chip=chip.devices,
        peaks=_peaks(chip),
        tokens=case.batch * (case.seq if case.phase == "prefill" else 1),
    )


def _energy_difference(
    arms: Mapping[str, ArmPrograms], cells: Mapping[str, str], chip: Chip | None
) -> EnergyDifference | None:
    """Of the compared programs, the second less the first; `None` unless two have an energy."""
    energies = {
        Side(arm=arm, cell=cell): energy for arm, cell in cells.items() if (energy := arms[arm].cell(cell).energy)
    }
    if len(energies) != 2 or chip is None:
        return None
    left, right = energies
    return compare_energy(energies[left], energies[right], chip, sides=(left, right))


def _differences(
    name: str, phase: PhaseReport, times: Mapping[Key, Timeline], *, axes: Sequence[str]
) -> dict[str, TimeDifference]:
    """Compare two arms' timelines: the compared programs as modelled, and each pair measured alike."""
    ran = dict.fromkeys(cell for programs in phase.arms.values() for cell in programs.profiles)
    pairs = {"modelled": phase.compared_cells, **{cell: {arm: cell for arm in phase.arms} for cell in ran}}
    differences = {}
    for pair, cells in pairs.items():
        if difference := _difference(name, phase, cells, times, axes):
            differences[pair] = difference
    return differences


def _difference(
    name: str, phase: PhaseReport, cells: Mapping[str, str], times: Mapping[Key, Timeline], axes: Sequence[str]
) -> TimeDifference | None:
    """`None` unless there are two.  cells: arm -> its cell."""
    sides = [Side(arm=arm, cell=cell) for arm, cell in cells.items() if (arm, name, cell) in times]
    if len(sides) != 2:
        return None
    left, right = (times[side.arm, name, side.cell] for side in sides)
    left_rows, right_rows = (phase.arms[side.arm].cell(side.cell).collectives for side in sides)
    diff = timeline_diff(left, right, left_rows=left_rows, right_rows=right_rows, axes=axes)
    return diff.to_report(*sides, most=MOST_STRETCHES)
