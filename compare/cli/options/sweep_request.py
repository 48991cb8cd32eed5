"""Each combination of a model and a mesh of a sweep's options as a case, or why it is impossible."""

import argparse
from collections.abc import Iterator, Sequence

from compare.cli.options.case_request import read_case
from compare.run.errors import WorkError
from compare.sweep.combination import Combination
from meshes.assignment import assign_chips
from meshes.choices import CAPACITY
from meshes.devices.mesh_spec import MeshSpec
from meshes.memory import check_fits
from meshes.mesh_argument import read_mesh
from meshes.models import model
from meshes.process.errors import MeshError


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


def _words(text: str, option: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise WorkError(f"{option} {text!r} has an empty entry; write comma-separated names")
    return words
