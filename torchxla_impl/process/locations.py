"""Source locations of a StableHLO module: restored inside scans, and without the machine's paths."""

import re
from collections.abc import Iterator, Sequence

import torch
from jaxlib.mlir import ir

from meshes.process.source_paths import machine_part

MACHINE = re.compile(machine_part(torch.__file__))
"""What is taken off file names: they then say `torchxla_impl/decoder/layers.py` on any machine."""

BODY = "FnComputation."
"""How torch_xla's scan names the function of a body."""

PINS = ("place", "mark")
"""The functions of a pin, which say less than the line of the model that placed it."""


def restore_locations(module: ir.Module, bodies: Sequence[ir.Module], *, names: Sequence[str]) -> None:
    """Give each scan's body the locations of `bodies`, inner loops first, and shorten all file names.

    `names` are those of the program's parameters.
    """
    ours = [each for each in module.body.operations if each.name.value.startswith(BODY)]
    for body, right in zip(ours, bodies, strict=True):
        for operation, source in zip(operations(body), operations(entry(right)), strict=True):
            operation.location = source.location
    known: dict[ir.Location, ir.Location] = {}
    for function in module.body.operations:
        for operation in operations(function):
            operation.location = _shortened(operation.location, known)
            if operation.name == "func.call":
                # XLA hands the lines of a call to all that it calls and that has lost its own: no line says more.
                operation.location = ir.Location.unknown()
        for block in blocks(function):
            for argument in block.arguments:
                argument.set_location(ir.Location.unknown())
    for argument, name in zip(entry(module).arguments, names, strict=True):
        argument.set_location(ir.Location.name(name))


def entry(module: ir.Module) -> ir.OpView:
    (main,) = (each for each in module.body.operations if each.name.value == "main")
    return main


def operations(function: ir.OpView) -> Iterator[ir.Operation]:
    """All operations inside, in the order of the text."""
    for block in blocks(function):
        yield from (each.operation for each in block.operations)


def blocks(function: ir.OpView) -> Iterator[ir.Block]:
    """All blocks inside, those of its operations after its own."""
    for region in function.operation.regions:
        for block in region.blocks:
            yield block
            for each in block.operations:
                yield from blocks(each)


def _shortened(location: ir.Location, known: dict[ir.Location, ir.Location]) -> ir.Location:
    """The same chain of names, calls and lines, with file names that hold on any machine."""
    if location not in known:
        known[location] = _rebuilt(location, known)
    return known[location]


def _rebuilt(location: ir.Location, known: dict[ir.Location, ir.Location]) -> ir.Location:
    match location:
        case ir.FileLineColLoc():
            return ir.Location.file(MACHINE.sub("", location.filename), location.start_line, location.start_col)
        case ir.NameLoc():
            return ir.Location.name(location.name_str, _shortened(location.child_loc, known))
        case ir.CallSiteLoc():
            caller = _shortened(location.caller, known)
            if isinstance(location.callee, ir.NameLoc) and location.callee.name_str in PINS:
                return caller
            return ir.Location.callsite(_shortened(location.callee, known), [caller])
        case ir.FusedLoc():
            return ir.Location.fused([_shortened(each, known) for each in location.locations])
    return location
