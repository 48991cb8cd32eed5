"""`python -m compare.energy RUN`: what a step takes in joules, modelled, with ranges."""

from collections.abc import Sequence

from compare.energy.speeds.measure import list_energies, measure_run
from compare.energy.speeds.request import EnergyRequest
from meshes.process.command_line import print_json
from meshes.process.one_line import complain_of


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, or JSON; 1 where a program of the run could not be read or modelled."""
    request = EnergyRequest.parse(argv)
    if request.frequencies or request.marginal:
        from compare.energy.speeds.answer import answer_speeds

        return answer_speeds(
            request.run, chip=request.chip, frequencies=request.frequencies, marginal=request.marginal,
            figure=request.figure, as_json=request.json,
        )  # fmt: skip
    measured = measure_run(request)
    report = measured.report
    if request.json:
        print_json(list_energies(report))
        return complain_of(measured.failures)
    from compare.render.energy.section import energy_section
    from compare.render.energy.sentence import energy_sentence
    from compare.render.terminal import console, print_sections, text_width, wrap_prose

    out = console()
    out.print(wrap_prose(energy_sentence(report), width=text_width(out), style="bold"))
    print_sections([energy_section(report)], out=out, details=True)
    return complain_of(measured.failures)
