"""`python -m compare.hlo FILE --axes data=2,tensor=4`: the collectives of anybody's compiled HLO text."""

from collections.abc import Sequence

from compare.cli.options.axes_options import add_axes, axes_of, hint_axes
from compare.cli.options.names_options import add_names, names_of
from compare.cli.options.program_words import add_program_words
from meshes.process.command_line import Parser, command_parser, print_json
from meshes.process.log import complain_of


def main(argv: Sequence[str] | None = None) -> int:
    """Print one row for each collective, in program order unless another is asked for."""
    parser = _parser()
    options = parser.parse_args(argv)

    from pathlib import Path

    from compare.hlo.collective import ORDERS
    from compare.render.time.speed.readings import print_readings, readings_to_json
    from compare.user_program.readings import Reading, is_of_run, read_program
    from compare.user_program.saved_program import is_saved

    axes, names = axes_of(options), names_of(options)
    words = options.arm, options.phase, options.cell
    is_run = options.file != "-" and is_of_run(Path(options.file))
    if is_run and (axes or options.scopes or options.owns):
        parser.error("run folders record their mesh and scopes; --axes, --mesh, --scopes and --owns are for programs")
    if options.topology and not options.time:
        parser.error("--topology belongs to --time: it is the TPU that the program was compiled for")
    if options.topology and "@" in (options.mesh or ""):
        parser.error("--topology and the topology of --mesh are both given; one says which TPU it was compiled for")
    if any(words) and not is_run:
        parser.error("--framework, --phase and --variant belong to a run folder")
    readings: Sequence[Reading]
    failures: tuple[str, ...]
    if is_run:
        from compare.user_program.run_programs import read_run_programs

        readings, failures = read_run_programs(Path(options.file), words=words)
    else:
        readings, failures = [read_program(options.file, axes=axes, names=names)], ()
    order = options.sort or ORDERS[1 if options.time else 0]
    topology = options.topology or (options.mesh or "").partition("@")[2]
    times = {}
    if options.time:
        from compare.user_program.reading_time import time_step

        times = {reading.name: time_step(reading, topology=topology) for reading in readings}
    if options.json:
        print_json(readings_to_json(readings, order=order, times=times))
    else:
        print_readings(readings, order=order, times=times, unfolded=options.all)
    if not is_run and not is_saved(Path(options.file)):
        hint_axes(options, [row.axes for row in readings[0].rows])
    return complain_of(failures)


def _parser() -> Parser:
    parser = command_parser(
        "compare.hlo",
        "The collectives of compiled HLO text: compiled.as_text(), or a file of --xla_dump_hlo_as_text.",
        example="optimized.hlo.gz --axes data=2,tensor=4 --json",
    )
    add = parser.add_argument
    add(
        "file",
        metavar="FILE",
        help="HLO text or a serialized HLO module, also gzipped; - reads it from standard input; a folder written by "
        "table.save(), which records the mesh axes; a run folder, or one program of it (RUN/jax/prefill/tpu)",
    )
    add_axes(parser)
    add_names(parser)
    add_program_words(parser, default="tpu")
    step = "also model a step (docs/model.md): compute, exposed communication, the longest operations"
    add("--time", action="store_true", help=step)
    tpu = "of --time: the TPU slice that the program was compiled for, if not recorded, as in --mesh tp8@v6e:2x4"
    add("--topology", metavar="NAME", default="", help=tpu)
    order = "order of the rows: as in the program, or most bytes of a step first (default with --time)"
    add("--sort", choices=("program", "step"), help=order)
    unfolded = "print each row by itself; without it three and more that are alike are one line"
    add("--all", action="store_true", help=unfolded)
    add("--json", action="store_true", help="print the rows as JSON, of a run folder by program")
    return parser
