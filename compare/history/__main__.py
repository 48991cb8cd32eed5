"""`python -m compare.history RUN --name all-gather.42`: who put a collective there, and what each pass made of it."""

from collections.abc import Sequence
from pathlib import Path

from compare.history.lineage_query import histories, saved_histories
from compare.run.folder.load_run import read_run
from compare.user_program.saved_program import is_saved
from meshes.process.command_line import command_parser, guarded, print_json


def main(argv: Sequence[str] | None = None) -> int:
    """Print the life of one collective, or a line for each."""
    parser = command_parser(
        "compare.history",
        "The passes of libtpu that put a collective there and changed it, with the HLO before and after.",
        example="runs/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4 --arm torchxla --phase prefill --name all-gather.42",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run folder, or a program of table.save(…)")
    parser.add_argument("--name", metavar="NAME", default="", help="of a collective in the optimized program; or all")
    parser.add_argument("--arm", metavar="ARM", default="", help="only of this framework")
    parser.add_argument("--phase", metavar="PHASE", default="", help="only of this phase")
    parser.add_argument("--cell", metavar="CELL", default="", help="only of this cell; else of the default one")
    parser.add_argument("--json", action="store_true", help="print them as JSON, with every line whole")
    asked = parser.parse_args(argv)
    if is_saved(asked.run):
        found = saved_histories(asked.run, name=asked.name)
    else:
        run = read_run(asked.run)
        found = histories(run, name=asked.name, arm=asked.arm, phase=asked.phase, cell=asked.cell)
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
    guarded(main)
