"""`python -m compare.export RUN --to ccl-bench --out DIR`: the programs of a run as another tool takes them."""

from collections.abc import Sequence
from pathlib import Path

from compare.export.folder.programs import select_programs
from compare.export.folder.write_folder import open_export
from compare.export.targets import TARGETS
from compare.run.folder.load_run import read_run
from meshes.process.command_line import command_parser, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Write one folder for each program, and print where each is."""
    parser = command_parser(
        "compare.export",
        "Write the timelines of a run's programs, measured where they were run, else modelled, for another tool.",
        example="runs/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4 --to ccl-bench --out traces",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run folder: case.json, and <arm>/<phase>/<cell>/")
    parser.add_argument("--to", choices=list(TARGETS), required=True, help="which tool")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="a new or empty folder, or an export")
    parser.add_argument("--arm", metavar="ARM", default="", help="only this framework")
    parser.add_argument("--phase", metavar="PHASE", default="", help="only this phase")
    parser.add_argument("--cell", metavar="CELL", default="", help="only this cell, like tpu or cpu (default: all)")
    options = parser.parse_args(argv)
    run = read_run(options.run)
    with open_export(options.out) as folder:
        programs = select_programs(run, arm=options.arm, phase=options.phase, cell=options.cell)
        names = [TARGETS[options.to](program, folder) for program in programs]
        folder.finish(to=options.to, names=names)
    print(*(options.out / name for name in names), sep="\n")
    return 0


if __name__ == "__main__":
    run_command(main)
