"""`wirediff what-if RUN --scale ici=2`: the programs of a run on other links, machines or algorithms."""

from collections.abc import Sequence

from compare.cli.options.what_if_options import what_if_parser
from meshes.process.command_line import print_json
from meshes.process.log import complain_of, log


def main(argv: Sequence[str]) -> int:
    """Print step times, and what is exposed of them.  1: some programs could not be read."""
    parser = what_if_parser()
    options = parser.parse_args(argv)

    from compare.cli.options.what_if_request import read_what_if

    request = read_what_if(options, parser)
    request.check_out()

    from compare.simulate.what_if.print_what_if import list_lines
    from compare.simulate.what_if.subjects import load_subjects
    from compare.simulate.what_if.what_if_result import simulate_run, to_json

    subjects, failures = load_subjects(request.run, chip=request.chip)
    results = simulate_run(request, subjects)
    written = []
    if request.into or request.out is not None:
        from compare.simulate.what_if.write import write_into, write_run

        written += write_into(request, results) if request.into else []
        written += write_run(request, results, request.out) if request.out is not None else []
    if request.json:
        print_json(to_json(request, results))
        for place in written:
            log().info("%s", place)
    else:
        print(*list_lines(request, results), *written, sep="\n")
    return complain_of(failures)
