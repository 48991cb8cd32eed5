"""The options of a case: model, mesh, and how the step is written."""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from meshes.case import CAPACITY, CHOICES, Case
from meshes.devices.generations import GENERATIONS
from meshes.mesh_argument import SPECS, read_mesh
from meshes.models import MODELS
from meshes.process.command_line import Parser, command_parser, print_json, whole_number
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

if TYPE_CHECKING:
    from meshes.checkpoint import Shapes


def case_parser(prog: str, description: str, *, example: str) -> Parser:
    """A parser with the options of a case."""
    parser = command_parser(prog, description, example=example)
    group = parser.add_argument_group("the case")
    mesh = "axis+size pairs in any order, optionally with +sp and @topology (tp4pp2, tp8+sp, tp8@v6e:2x4), or a"
    group.add_argument("--mesh", metavar="NAME", default=argparse.SUPPRESS, help=f"{mesh} TOML spec file")
    model = group.add_mutually_exclusive_group()
    model.add_argument("--model", metavar="NAME", default="llama-3.1-8b", help="a model preset")
    add_checkpoint(model)
    phases = "prefill, decode, or both, comma-separated"
    group.add_argument("--phase", metavar="LIST", default=",".join(CHOICES["phases"]), help=phases)
    add_step(group)
    add_list(parser)
    return parser


def add_checkpoint(group: argparse._MutuallyExclusiveGroup) -> None:
    """Add what stands in the place of a preset."""
    config = "a Hugging Face checkpoint folder; its config.json gives the shapes"
    group.add_argument("--checkpoint", metavar="DIR", type=Path, help=config)


def add_step(group: argparse._ArgumentGroup, *, read_microbatches: Callable[[str], object] = whole_number) -> None:
    """Add the options of a step that do not depend on model and mesh.

    read_microbatches: what makes a value of --microbatches of its text.
    """
    add = group.add_argument
    add("--batch", metavar="B", type=whole_number, default=8, help="global batch size, in sequences")
    seq = "prompt length in tokens; in decode, tokens in the KV cache"
    add("--seq", metavar="S", type=whole_number, default=1024, help=seq)
    pipelined = "default: 4 with a pipeline, else 1"
    add("--microbatches", metavar="M", type=read_microbatches, default=argparse.SUPPRESS, help=pipelined)
    capacity = "expert capacity factor, e.g. 1.25; 'full' gives every token a slot, so none is dropped"
    add("--capacity", metavar="C", type=_capacity, default=CAPACITY, help=capacity)
    for word, says in _CHOICES.items():
        add(f"--{word}", choices=CHOICES[word], default=CHOICES[word][0], help=says)


_CHOICES = {
    "style": "sharding constraints: pinned = on weights, cache, inputs and activations; weights = not on activations; "
    "explicit = hand-written collectives; typed = JAX's explicit sharding, each sharding in its array's type",
    "loop": "layers and pipeline ticks as a loop (scan) or unrolled",
    "attention": "each framework's own attention call (idiomatic), or the same written as einsum",
}
"""Words of a case that are one of some."""


def add_list(parser: Parser) -> None:
    """Add the option that lists the available names."""
    names = "list model presets, mesh names or TPU topologies, and exit"
    parser.add_argument("--list", choices=tuple(_LISTS), default=argparse.SUPPRESS, help=names)


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
        **{word: getattr(options, word) for word in ("batch", "seq", "capacity", *_CHOICES)},
    )
    if shapes:
        shapes.check_context(case.mesh.cp)
    return case


def _phases(words: str) -> tuple[str, ...]:
    phases = tuple(words.split(","))
    if unknown := [phase for phase in phases if phase not in CHOICES["phases"]]:
        raise MeshError(f"--phase has {quote(unknown[0])}; choose from {', '.join(CHOICES['phases'])}")
    return phases


def _shapes(checkpoint: Path | None, *, contract_only: bool) -> "Shapes | None":
    if checkpoint is None:
        return None
    from meshes.checkpoint import Shapes, read_model, read_shapes  # most cases are of presets

    return read_shapes(checkpoint) if contract_only else Shapes(read_model(checkpoint), windows=False)


def _capacity(words: str) -> float | None:
    """A capacity factor, or `None` for `full`, which never drops a token; for argparse."""
    if words == "full":
        return None
    try:
        return float(words)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{words!r} is no factor; write one like 1.25, or full") from None


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


_LISTS: dict[str, Callable[[], Iterator[str]]] = {"models": _models, "meshes": _meshes, "topologies": _topologies}
