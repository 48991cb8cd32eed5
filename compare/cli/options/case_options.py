"""The options of a case: model, mesh, and how the step is written."""

import argparse
from collections.abc import Callable

from meshes.choices import CAPACITY, CHOICES
from meshes.process.command_line import Parser, command_parser, path, whole_number

LISTS = ("models", "meshes", "topologies")
"""Names that --list prints."""


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
    group.add_argument("--checkpoint", metavar="DIR", type=path, help=config)


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
    for word, says in WRITTEN.items():
        add(f"--{word}", choices=CHOICES[word], default=CHOICES[word][0], help=says)


WRITTEN = {
    "style": "sharding constraints: pinned = on weights, cache, inputs and activations; weights = not on activations; "
    "explicit = hand-written collectives; typed = JAX's explicit sharding, each sharding in its array's type",
    "loop": "layers and pipeline ticks as a loop (scan) or unrolled",
    "attention": "each framework's own attention call (idiomatic), or the same written as einsum",
}
"""Words of a case that say how its step is written."""


def add_list(parser: Parser) -> None:
    """Add the option that lists the available names."""
    names = "list model presets, mesh names or TPU topologies, and exit"
    parser.add_argument("--list", choices=LISTS, default=argparse.SUPPRESS, help=names)


def _capacity(words: str) -> float | None:
    """A capacity factor, or `None` for `full`, which never drops a token; for argparse."""
    if words == "full":
        return None
    try:
        return float(words)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{words!r} is no factor; write one like 1.25, or full") from None
