"""`python -m compare.history RUN --name all-gather.42`: which pass created a collective, and which changed it."""

from collections.abc import Sequence

from compare.cli.options.program_words import add_program_words
from meshes.process.command_line import command_parser, path, print_json
from meshes.process.log import complain_of


def main(argv: Sequence[str] | None = None) -> int:
    """Print the history of one collective, or a line for each; 1 where a program could not be read."""
    parser = command_parser(
        "compare.history",
        "Show the libtpu passes that created and changed a collective, with the HLO before and after each.",
        example="docs/example-run --framework torchxla --phase decode --name all-gather.29",
    )
    parser.add_argument("run", metavar="RUN", type=path, help="a run folder, or a folder of table.save(…)")
    parser.add_argument(
        "--name",
        metavar="NAME",
        default="",
        help="a collective of the optimized program, or how the names of several begin, like all-gather (default: all)",
    )
    add_program_words(parser, default="tpu, else where --name is found")
    parser.add_argument("--json", action="store_true", help="print JSON, with full lines of HLO")
    options = parser.parse_args(argv)

    from compare.history.lineage_query import query_run, query_saved
    from compare.user_program.saved_program import is_saved

    failures: tuple[str, ...] = ()
    if is_saved(options.run):
        histories = query_saved(options.run, name=options.name)
    else:
        from compare.report.model.program import DEFAULT_CELL
        from compare.report.programs import list_failures, list_untraced
        from compare.run.folder.load_run import judge_run, read_run

        run = judge_run(read_run(options.run))
        chosen = {result.key for result in run.run.select((options.arm, options.phase, options.cell or DEFAULT_CELL))}
        programs = [program for program in run.programs if program.result.key in chosen]
        failures = (*list_failures(program.result for program in programs), *list_untraced(programs))
        histories = query_run(run, name=options.name, arm=options.arm, phase=options.phase, cell=options.cell)
    if options.json:
        print_json([history.to_dict() for history in histories])
    else:
        from compare.history.print_history import print_histories, print_life

        if options.name and len({history.row.name for history in histories}) == 1:
            for history in histories:
                print_life(history)
        else:
            print_histories(histories)
            if options.name:
                print(f"--name {histories[0].row.name} shows one of them, pass by pass.")
    return complain_of(failures)
