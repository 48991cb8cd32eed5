"""The options of a sweep, and each combination of a model and a mesh as a case, or why it is impossible."""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from compare.cli.options.case_options import add_checkpoint, add_list, add_step, read_case
from compare.cli.options.chip_option import add_chip
from compare.cli.options.work_options import add_controls, add_frameworks, add_limits, add_witnesses
from compare.report.compiler_options import OPTIONS
from compare.report.witnesses import WITNESSES
from compare.run.errors import WorkError
from compare.sweep.combination import Combination
from compare.sweep.engines.engines import ENGINES
from meshes.assignment import assign_chips
from meshes.case import CAPACITY, CHOICES
from meshes.devices.mesh_spec import MeshSpec
from meshes.memory import check_fits
from meshes.mesh_argument import read_mesh
from meshes.models import model
from meshes.process.command_line import Parser, command_parser, whole_number
from meshes.process.errors import MeshError


def sweep_parser() -> Parser:
    """A parser with the options of a sweep."""
    parser = command_parser(
        "compare.sweep",
        "Compare the frameworks for every model on every mesh: a run folder for each, one table, one figure.",
        example="--meshes tp8,tp4pp2,dp2tp4 --models llama-3.1-8b,qwen3-4b",
    )
    group = parser.add_argument_group("the cases")
    meshes = "comma-separated meshes, each as in compare.run: tp8,tp4pp2,tp8+sp,tp8@v6e:2x4,my.toml"
    group.add_argument("--meshes", metavar="LIST", default=argparse.SUPPRESS, help=meshes)
    models = group.add_mutually_exclusive_group()
    models.add_argument("--models", metavar="LIST", default="llama-3.1-8b", help="comma-separated model presets")
    add_checkpoint(models)
    phases = "prefill, decode, or prefill,decode"
    group.add_argument("--phases", metavar="LIST", default=",".join(CHOICES["phases"]), help=phases)
    add_step(group, read_microbatches=_numbers)
    add_list(parser)
    _add_work(parser)
    return parser


def _add_work(parser: Parser) -> None:
    group = parser.add_argument_group("the work")
    add = group.add_argument
    options = f"also compile with these compiler options of libtpu: {', '.join(OPTIONS)}; or all"
    add("--options", metavar="LIST", default="", help=options)
    add_frameworks(group)
    add_controls(group, "ablations of each case, as in compare.run; or all, or none")
    add_witnesses(group, f"also compile third-party models for the cases that they take: {', '.join(WITNESSES)}")
    out = "output folder for run folders, sweep.html, tables and figure (default: a folder under sweeps/)"
    add("--out", metavar="DIR", type=Path, default=argparse.SUPPRESS, help=out)
    jobs = "cases compiled at the same time (default: number of cores)"
    add("--jobs", metavar="N", type=whole_number, default=argparse.SUPPRESS, help=jobs)
    engine = "processes on this machine, or tasks of a Ray cluster"
    add("--engine", choices=ENGINES, default="local", help=engine)
    add_limits(group, "recompile everything, finished cases too, and write nothing to the cache")
    add(
        "--no-pages",
        action="store_true",
        help="numbers only: no report.html and figures of each case, which take most of the time where programs are in "
        "the cache; compare.report FOLDER draws them",
    )
    energy = "also modelled energy and power of every program, kernel times, heat maps of chips (docs/energy.md)"
    add("--energy", action="store_true", help=energy)
    add_chip(parser, "; of every case, whose report keeps a copy")
    add("--json", action="store_true", help="print sweep.json; the path of the page goes to stderr")


def combinations(options: argparse.Namespace) -> list[Combination]:
    """Each model on each mesh, models outermost, no case twice.

    Raises `MeshError` on a name that cannot be parsed, and `WorkError` if no combination is possible.  A single
    impossible combination is returned with its reason.
    """
    if "meshes" not in options:
        raise MeshError("no mesh is given; write --meshes tp8,tp4pp2, or see --list meshes")
    meshes, models = _words(options.meshes, "--meshes"), _models(options)
    for name in meshes:
        _check_spelling(name)
    numbers = getattr(options, "microbatches", (None,))
    listed = [_combination(options, name, mesh, number) for name in models for mesh in meshes for number in numbers]
    if all(combination.refused for combination in listed):
        reasons = list(dict.fromkeys(combination.refused for combination in listed))
        more = f" (and {len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
        raise WorkError(f"none of these {len(listed)} combinations is possible: {reasons[0]}{more}")
    return list(_distinct(listed))


def _models(options: argparse.Namespace) -> list[str]:
    if options.checkpoint is not None:
        from meshes.checkpoint import read_model  # most cases are of presets

        return [read_model(options.checkpoint).name]
    names = _words(options.models, "--models")
    for name in names:
        model(name)
    return names


def _combination(options: argparse.Namespace, name: str, mesh: str, microbatches: int | None) -> Combination:
    words = {**vars(options), "model": name, "mesh": mesh, "phase": options.phases, "microbatches": microbatches}
    try:
        plan = read_mesh(mesh)
        # In a list of meshes and models, --microbatches and --capacity apply where there is a pipeline or experts.
        if plan.mesh.pp == 1:
            words["microbatches"] = None
        if options.checkpoint is None and not model(name).experts:
            words["capacity"] = CAPACITY
        case = read_case(argparse.Namespace(**words))
        assign_chips(case.plan)
        check_fits(case)
    except MeshError as error:
        return Combination(model=name, mesh=mesh, refused=" ".join(str(error).split()))
    return Combination(model=name, mesh=mesh, case=case)


def _check_spelling(mesh: str) -> None:
    """Raise `MeshError` for a mesh name that cannot be parsed: a typing error, not an impossible combination."""
    if mesh.endswith(".toml"):
        read_mesh(mesh)
    else:
        MeshSpec.parse(mesh.partition("@")[0].partition("+")[0])


def _distinct(combinations: Sequence[Combination]) -> Iterator[Combination]:
    """Without duplicates: `tp4pp2` and `pp2tp4` are one case; the first spelling stays."""
    seen: set[str] = set()
    for combination in combinations:
        name = (
            combination.case.name
            if combination.case
            else " ".join((combination.model, combination.mesh, combination.refused))
        )
        if name not in seen:
            seen.add(name)
            yield combination


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers in `1,2,4`, each once."""
    return tuple(dict.fromkeys(whole_number(word.strip()) for word in text.split(",")))


def _words(text: str, option: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise WorkError(f"{option} {text!r} has an empty entry; write comma-separated names")
    return words
