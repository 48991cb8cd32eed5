"""`python -m compare.history RUN --name all-gather.42`: which pass created a collective, and which changed it."""

from collections.abc import Sequence
from pathlib import Path

from compare.history.lineage_query import query_run, query_saved
from compare.run.folder.load_run import judge_run, read_run
from compare.user_program.saved_program import is_saved
from meshes.process.command_line import command_parser, print_json, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Print the life of one collective, or a line for each."""
    parser = command_parser(
        "compare.history",
        "Show the libtpu passes that created and changed a collective, with the HLO before and after each.",
        example="runs/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4 --arm torchxla --phase prefill --name all-gather.42",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run folder, or a folder of table.save(…)")
    parser.add_argument(
        "--name", metavar="NAME", default="", help="a collective of the optimized program (default: all of them)"
    )
    parser.add_argument("--arm", metavar="ARM", default="", help="only this framework")
    parser.add_argument("--phase", metavar="PHASE", default="", help="only this phase")
    parser.add_argument("--cell", metavar="CELL", default="", help="only this cell (default: the default cell)")
    parser.add_argument("--json", action="store_true", help="print JSON, with full lines of HLO")
    asked = parser.parse_args(argv)
    if is_saved(asked.run):
        found = query_saved(asked.run, name=asked.name)
    else:
        run = judge_run(read_run(asked.run))
        found = query_run(run, name=asked.name, arm=asked.arm, phase=asked.phase, cell=asked.cell)
    if asked.json:
        print_json([one.to_dict() for one in found])
    else:
        from compare.history.text import print_histories, print_life

        if asked.name:
            for one in found:
                print_life(one)
        else:
            print_histories(found)
    return 0


if __name__ == "__main__":
    run_command(main)
