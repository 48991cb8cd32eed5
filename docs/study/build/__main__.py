"""`python -m docs.study.build docs/study/study.toml`: compile the cases of a study, make its data, text and page."""

import sys
from collections.abc import Sequence
from pathlib import Path

from docs.study.build.make import compile_cases, save_data, save_traces, write_text
from docs.study.build.spec import choose_groups, read_study
from meshes.process.command_line import command_parser, run_command, whole_number


def main(argv: Sequence[str] | None = None) -> int:
    """0: all of it; 1: a case failed, the rest is in the study."""
    parser = command_parser(
        "docs.study.build",
        "Compile every case of a study file (what is done is not done again), save the tables of all runs as Parquet, "
        "and fill the study's text in from them.",
        example="docs/study/study.toml",
    )
    parser.add_argument(
        "study",
        metavar="STUDY.toml",
        type=Path,
        help="the study file; its text and queries are beside it",
    )
    parser.add_argument(
        "--runs", metavar="DIR", type=Path, default=Path("runs/study"), help="the folder of the run folders"
    )
    parser.add_argument(
        "--from",
        dest="stage",
        choices=("cases", "data", "text"),
        default="cases",
        help="start with the cases, with the data of runs that are there, or with the text",
    )
    parser.add_argument(
        "--group",
        metavar="NAME",
        action="append",
        default=[],
        help="compile this group's cases, and stop there; repeat it for several",
    )
    parser.add_argument("--jobs", metavar="N", type=whole_number, default=None, help="cases at the same time")
    parser.add_argument("--engine", choices=("local", "ray"), default="local", help="as in compare.sweep")
    request = parser.parse_args(argv)
    if request.group and request.stage != "cases":
        parser.error("--group compiles cases, and --from leaves them out")
    study = read_study(request.study)
    whole = True
    if request.stage == "cases":
        jobs = ["--jobs", str(request.jobs)] if request.jobs else []
        chosen = choose_groups(study, request.group) if request.group else study
        whole = compile_cases(chosen, request.runs, options=["--engine", request.engine, *jobs])
    if request.stage in ("cases", "data") and not request.group:
        save_data(study, request.runs)
        save_traces(study, request.runs)
    if not request.group:
        print(*write_text(study), sep="\n")
    if not whole:
        print("a case failed; the others are done", file=sys.stderr)
    return 0 if whole else 1


if __name__ == "__main__":
    run_command(main)
