"""`python -m compare.export RUN --to ccl-bench --out DIR`: the programs of a run as another tool takes them."""

from collections.abc import Sequence

from compare.cli.options.program_words import add_program_words
from compare.export.targets import TARGETS
from meshes.process.command_line import command_parser, path, print_json
from meshes.process.log import complain_of
from meshes.process.one_line import plain


def main(argv: Sequence[str] | None = None) -> int:
    """Write one folder for each program, and print where each is; 1 where the run has failed to compile others."""
    parser = command_parser(
        "compare.export",
        "Write the programs of a run for another tool: their timelines (ccl-bench), measured where they were run, else "
        "modelled; or what every rank computes and communicates (chakra), for ASTRA-sim.",
        example="runs/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4 --to ccl-bench --out traces",
    )
    parser.add_argument("run", metavar="RUN", type=path, help="a run folder: case.json, and <arm>/<phase>/<cell>/")
    parser.add_argument("--to", choices=list(TARGETS), required=True, help="which tool")
    parser.add_argument("--out", metavar="DIR", type=path, required=True, help="a new or empty folder, or an export")
    add_program_words(parser)
    parser.add_argument("--facts", action="store_true", help="chakra: also the verdict on every collective")
    parser.add_argument("--json", action="store_true", help="print the folders and what failed as JSON")
    options = parser.parse_args(argv)
    target = TARGETS[options.to]
    write = target.write_with_facts if options.facts else target.write
    if write is None:
        parser.error(f"--facts belongs to --to chakra, not to {options.to}")

    from compare.export.export_run import export_run
    from compare.report.programs import list_failures
    from compare.run.folder.load_run import read_run

    run = read_run(options.run)
    words = {"arm": options.arm, "phase": options.phase, "cell": options.cell}
    names = export_run(run, options.out, write=write, to=options.to, platforms=target.platforms, words=words)
    folders, failures = [str(options.out / name) for name in names], list_failures(run.select(tuple(words.values())))
    if options.json:
        print_json({"to": options.to, "folders": folders, "failures": list(failures)})
    else:
        print(*map(plain, folders), sep="\n")
    return complain_of(failures)
