"""The report of a run with its energies, by the coefficients of a request."""

from compare.energy.request import EnergyRequest
from compare.report.model.codec import JsonObject, encode
from compare.report.model.report import Report
from compare.run.errors import WorkError
from compare.run.folder.load_run import judge_run, read_run
from compare.run.folder.timelines import SIMULATION, add_times


def measure_run(request: EnergyRequest) -> Report:
    """Judged and timed again, nothing written.  `WorkError` where the run has no modelled program of its own slice."""
    run = read_run(request.run)
    judged = judge_run(run)
    times = judged.timelines(power=request.power)
    if times.simulated:
        raise WorkError(f"{request.run} is simulated on the machine of {SIMULATION}, whose coefficients nobody knows")
    report = add_times(judged.report(), judged.programs, times)
    if report.energy_model is None:
        raise WorkError(f"{request.run} has no program whose step was modelled")
    return report


def list_energies(report: Report) -> JsonObject:
    """As JSON: the coefficients, then phase -> arm -> cell -> energy, and the difference of the compared programs."""
    phases = {}
    for name, phase in report.phases.items():
        energies = {
            arm: {program.cell: encode(program.energy) for program in programs.compiled if program.energy}
            for arm, programs in phase.arms.items()
        }
        phases[name] = {
            "arms": energies,
            "difference": encode(phase.energy_difference) if phase.energy_difference else None,
        }
    return {"energy_model": encode(report.energy_model), "phases": phases}
