"""The modelled step of a compiled program, of a run or not."""

from compare.run.errors import WorkError
from compare.run.folder.timelines import build_timelines
from compare.schedule.hardware import Hardware
from compare.user_program.readings import Reading
from compare.user_program.run_programs import RunReading
from compare.user_program.step_time import StepTime, describe_step, model_program


def time_step(reading: Reading, *, topology: str = "") -> StepTime:
    """The modelled step of a program; of one of a run, what its report says.

    topology: what it was compiled for, where that is not recorded.  Raises `ValueError`, one line, where it cannot be
    modelled.
    """
    if topology and reading.topology and topology != reading.topology:
        raise WorkError(f"the program was compiled for {reading.topology}, not for {topology}")
    if not isinstance(reading, RunReading):
        return model_program(
            reading.module, reading.rows, topology=topology or reading.topology, axes=reading.axes, names=reading.names
        )
    times, key = build_timelines([reading.program], folder=reading.folder), reading.program.result.key
    if key not in times.by_key:
        raise WorkError(f"{'/'.join(key)} has no timeline: {times.errors.get(key, 'its program cannot be read')}")
    hardware = Hardware.of(times.chip or reading.program.case.topology.generation)
    return describe_step(
        times.by_key[key], reading.module, reading.rows, hardware=hardware, axes=reading.axes, names=reading.names
    )
