"""Answer `compare.energy RUN` with --frequency or --marginal."""

import sys
from collections.abc import Sequence
from pathlib import Path

from compare.energy.core_speed import core_shares
from compare.energy.speeds.frequency import frequency_json, list_frequency_lines, scale_run
from compare.energy.speeds.marginal import list_marginal_lines, marginal_json, measure_run
from compare.energy.speeds.subjects import load_subjects
from meshes.process import atomic_files
from meshes.process.command_line import print_json
from meshes.process.one_line import complain_of


def answer_speeds(
    run: Path, *, chip: Path | None, frequencies: Sequence[float], marginal: bool, figure: Path | None, as_json: bool
) -> int:
    """Print the answer; 0: every program was modelled, 1: some could not be read."""
    subjects = load_subjects(run, chip=chip)
    share, *ends = core_shares(subjects.chip, subjects.voltage)
    document: dict[str, object] = {
        "basis": subjects.basis, "voltage": subjects.voltage_words,
        "core_share_of_static": {"value": share, "low": min(ends, default=share), "high": max(ends, default=share)},
    }  # fmt: skip
    lines: list[str] = []
    if frequencies:
        curves = scale_run(subjects, frequencies)
        document["frequency"] = frequency_json(curves)
        lines += list_frequency_lines(subjects, curves)
        if figure:
            from compare.energy.speeds.figure import draw_curves

            picture = draw_curves(subjects, curves)
            atomic_files.write_bytes(figure, picture.svg if figure.suffix == ".svg" else picture.png)
            print(figure, file=sys.stderr)
    if marginal:
        margins = measure_run(subjects)
        document["marginal"] = marginal_json(margins)
        lines += list_marginal_lines(subjects, margins)
    if as_json:
        print_json(document)
    else:
        print(*lines, sep="\n")
    return complain_of(subjects.failures)
