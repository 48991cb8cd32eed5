"""`python -m compare.calibrate`: the constants of a device, from small programs or from measured windows."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compare.cli.options.calibrate_request import parse_request
from meshes.process.command_line import print_json
from meshes.process.log import log

if TYPE_CHECKING:
    from compare.calibrate.result import Calibration


def main(argv: Sequence[str] | None = None) -> int:
    """Print the constants, and write them; 1 where some could not be told apart."""
    request = parse_request(argv)

    from compare.calibrate.print_calibration import list_lines
    from compare.calibrate.result import format_toml, to_json

    calibration = _calibrate_windows(request) if request.windows else _calibrate_device(request)
    request.out.write_text(format_toml(calibration), encoding="utf-8")
    if request.json:
        print_json(to_json(calibration) | {"file": str(request.out)})
    else:
        print(*list_lines(calibration), request.out, sep="\n")
    return int(any(part.fit.collinear for _, part, _ in calibration.parts))


def _calibrate_windows(request: argparse.Namespace) -> "Calibration":
    from compare.calibrate.result import Provenance, calibrate, digest
    from compare.calibrate.windows import read_windows
    from meshes.devices.generations import GENERATIONS

    chip = GENERATIONS.get(request.generation)
    windows = read_windows(request.windows, devices_per_chip=chip.devices if chip else 1)
    return calibrate(
        windows,
        Provenance(
            device=request.device or request.windows.stem,
            generation=request.generation,
            date="",
            meter=request.windows.name if windows.have_energy else "",
            runtime="",
            windows=request.windows.name,
            sha256=digest(request.windows),
        ),
    )


def _calibrate_device(request: argparse.Namespace) -> "Calibration":
    from compare.calibrate.benchmarks import measure_device
    from compare.calibrate.result import Provenance, calibrate, digest
    from compare.calibrate.windows import Windows, write_windows

    measured = measure_device(
        request.platform,
        kinds=request.kinds,
        num_devices=request.devices,
        repeats=request.repeats,
        notify=log().info,
    )
    path = request.out.with_suffix(".windows.csv")
    write_windows(measured.table, path)
    about = measured.device
    return calibrate(
        Windows(measured.table, measured.notes),
        Provenance(
            device=f"{about['kind']} ({about['num_devices']} devices)",
            generation=measured.generation,
            date=str(about["date"]),
            meter=str(about["meter"]),
            windows=path.name,
            sha256=digest(path),
            runtime=f"{about['runtime']}; {', '.join(f'{a} {b}' for a, b in dict(about['versions']).items())}",  # type: ignore[call-overload]
        ),
    )
