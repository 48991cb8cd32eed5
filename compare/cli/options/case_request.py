"""The case that the options name; and the names that --list prints."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from compare.cli.options.case_options import LISTS, WRITTEN
from meshes.case import Case
from meshes.choices import CHOICES
from meshes.devices.generations import GENERATIONS
from meshes.mesh_argument import SPECS, read_mesh
from meshes.models import MODELS
from meshes.process.command_line import print_json
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

if TYPE_CHECKING:
    from meshes.checkpoint import Shapes


def read_case(options: argparse.Namespace, *, contract_only: bool = False) -> Case:
    """The case of the options.  Raises `MeshError` where they are invalid.

    contract_only: of a checkpoint the shapes alone, also of a model that the twins do not compute.
    """
    if "mesh" not in options:
        raise MeshError("no mesh was named; write --mesh tp4pp2, or see --list meshes")
    shapes = _shapes(options.checkpoint, contract_only=contract_only)
    case = Case.read(
        options.mesh,
        model_name=options.model,
        shapes=shapes.model if shapes else None,
        microbatches=getattr(options, "microbatches", None),
        phases=_phases(options.phase),
        **{word: getattr(options, word) for word in ("batch", "seq", "capacity", *WRITTEN)},
    )
    if shapes:
        shapes.check_context(case.mesh.cp)
    return case


def _phases(words: str) -> tuple[str, ...]:
    phases = tuple(words.split(","))
    if unknown := [phase for phase in phases if phase not in CHOICES["phases"]]:
        raise MeshError(f"{quote(unknown[0])} is no phase; choose from {', '.join(CHOICES['phases'])}")
    if twice := [phase for phase in phases if phases.count(phase) > 1]:
        raise MeshError(f"{quote(words)} names {twice[0]} twice")
    return phases


def _shapes(checkpoint: Path | None, *, contract_only: bool) -> "Shapes | None":
    if checkpoint is None:
        return None
    from meshes.checkpoint import Shapes, read_model, read_shapes  # most cases are of presets

    return read_shapes(checkpoint) if contract_only else Shapes(read_model(checkpoint), windows=False)


def print_list(options: argparse.Namespace) -> None:
    """Print the lines of `--list`; with `--json` as a list."""
    lines = list(_LISTS[options.list]())
    if options.json:
        print_json(lines)
    else:
        print(*lines, sep="\n")


def _models() -> Iterator[str]:
    for row in MODELS.values():
        ffn = f"experts={row.experts_per_token}/{row.experts} ffn={row.expert_ffn}" if row.experts else f"ffn={row.ffn}"
        shape = f"L={row.layers} D={row.embed} heads={row.heads}/{row.kv_heads} {ffn} V={row.vocab}"
        yield f"{row.name:18} {row.num_parameters / 1e9:7.3f} B parameters  {shape}"


def _meshes() -> Iterator[str]:
    yield "axis+size pairs of dp, pp, cp, ep, tp in any order: tp8, dp2tp4, tp4pp2, cp4tp2, dp2ep4 (experts) …;"
    yield "+sp behind them is sequence parallelism over tp: tp8+sp; spec files that ship:"
    for path in sorted(SPECS.glob("*.toml")):
        plan = read_mesh(str(path))
        yield f"{path.name:26} {plan.mesh.name} on {plan.topology.name}"


def _topologies() -> Iterator[str]:
    for row in GENERATIONS.values():
        more = " and multiples of 4x4x4" if row.torus_dims == 3 else ""
        chip = f"{row.hbm_bytes / 2**30:.0f} GiB, {row.devices} device{'s' * (row.devices > 1)} a chip"
        yield f"{row.name:6} {chip:28} {' '.join(row.slices)}{more}"


_LISTS = dict(zip(LISTS, (_models, _meshes, _topologies), strict=True))
