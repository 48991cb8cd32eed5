"""What a measured program says of itself: which program it was, what ran it, and how it differs from the case."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from compare.hlo.proto import program
from compare.timing.errors import TimingError
from compare.timing.join.programs import read_protos
from compare.timing.xplane import reader
from meshes.case import Case
from meshes.reduced import describe_reduction


def measured_label(case: Case, ran: Case, executed: Mapping[str, object]) -> str:
    """`measured on 8 virtual CPU devices on 2 cores (torch_xla), not a TPU; embed 4096 → 256, …`.

    Devices that share cores wait for those, too.  ran: the case that was executed for `case`.
    executed: of its about.json.
    """
    devices = executed.get("num_devices", ran.mesh.num_devices)
    runtime = executed.get("runtime", "unknown runtime")
    where = f"{_counted(devices, 'device')} ({executed.get('device_kind', 'unknown kind')}; {runtime})"
    if executed.get("platform") == "cpu":
        shared = f" on {_counted(executed['cores'], 'core')}" if "cores" in executed else ""
        where = f"{_counted(devices, 'virtual CPU device')}{shared} ({runtime}), not a TPU"
    smaller = describe_reduction(case, ran)
    return f"measured on {where}" + (f"; {smaller}" if smaller else "")


def _counted(number: object, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def read_program_text(files: Sequence[Path]) -> str:
    """The HLO text of the program that a profile of one of our workers is about.

    The largest that it carries: what runs beside a step (a fill, a transfer) is a line or two.  `HloError` or
    `TimingError` where it carries none that can be read.
    """
    found = read_protos(reader.read_file(path) for path in files)
    if not found:
        raise TimingError("the profile carries no program")
    return program.write_hlo_text(max(found.values(), key=len))
