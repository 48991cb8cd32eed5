"""`python -m compare.energy RUN`: what a step takes in joules, modelled, with ranges."""

import argparse
from collections.abc import Sequence

from compare.cli.options.energy_request import parse_energy
from meshes.process.command_line import print_json
from meshes.process.log import complain_of, log


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, or JSON; 1 where a program of the run could not be read or modelled."""
    options = parse_energy(argv)
    if options.frequency or options.marginal:
        return _answer_speeds(options)
    from compare.energy.speeds.measure import list_energies, measure_run

    report, failures = measure_run(options.run, chip=options.chip)
    if options.json:
        print_json(list_energies(report))
        return complain_of(failures)
    from compare.render.energy.section import energy_section
    from compare.render.energy.sentence import energy_sentence
    from compare.render.terminal import console, print_sections, text_width, wrap_prose

    out = console()
    out.print(wrap_prose(energy_sentence(report), width=text_width(out), style="bold"))
    print_sections([energy_section(report)], out=out, details=True)
    return complain_of(failures)


def _answer_speeds(options: argparse.Namespace) -> int:
    """--frequency and --marginal."""
    from compare.energy.speeds.frequency import frequency_json, list_frequency_lines, scale_run
    from compare.energy.speeds.marginal import list_marginal_lines, marginal_json, measure_run
    from compare.energy.speeds.subjects import load_subjects

    subjects = load_subjects(options.run, chip=options.chip)
    document = subjects.to_json()
    lines: list[str] = []
    if options.frequency:
        curves = scale_run(subjects, options.frequency)
        document["frequency"] = frequency_json(curves)
        lines += list_frequency_lines(subjects, curves)
        if options.figure:
            from compare.energy.speeds.figure import draw_curves
            from meshes.process import atomic_files

            picture = draw_curves(subjects, curves)
            atomic_files.write_bytes(options.figure, picture.svg if options.figure.suffix == ".svg" else picture.png)
            log().info("%s", options.figure)
    if options.marginal:
        margins = measure_run(subjects)
        document["marginal"] = marginal_json(margins)
        lines += list_marginal_lines(subjects, margins)
    if options.json:
        print_json(document)
    else:
        print(*lines, sep="\n")
    return complain_of(subjects.failures)
