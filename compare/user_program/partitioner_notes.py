"""What the partitioner decided by itself, in words: shardings of open results, and tensors that it made whole."""

from collections.abc import Iterator, Mapping, Sequence

from compare.compile.rematerialised import Rematerialised
from compare.hlo.collective import Collective
from compare.hlo.collectives.replicated import replicated_notes
from compare.hlo.dataflow.dataflow import CallContext
from compare.hlo.devices.tiles import spell_split
from compare.hlo.provenance.layout_passthrough import trace_sources
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import Module, read
from compare.user_program.compile_program import CompiledProgram
from compare.user_program.repeated_work import repeated_work

_LOST = "what it is computed from was taken away (so libtpu does with the places of `top_k`: docs/surprises/top_k.py)"
_WAY = "constraints on the way, one axis at a time, may avoid it (docs/surprises/reshard.py)"
MOST = 8
"""Tensors in a note; the others are counted."""


def list_notes(
    compiled: CompiledProgram,
    module: Module,
    *,
    axes: Mapping[str, int],
    rows: Sequence[Collective],
    names: SourceNames | None = None,
) -> Iterator[str]:
    """axes: the mesh's, outermost first; rows: the program's, for the source lines."""
    before = read(compiled.before)
    if not replicated_notes(module) and (words := repeated_work(before, module, axes=axes, names=names)):
        yield words
    if lost := sorted(_constant_results(module) - _constant_results(before)):
        yield (
            f"{'result' if len(lost) == 1 else 'results'} {', '.join(map(str, lost))} of the compiled program depend"
            f"{'s' * (len(lost) == 1)} on no argument: {_LOST}"
        )
    if compiled.chosen:
        alike: dict[str, list[int]] = {}
        for number, sharding in compiled.chosen.items():
            alike.setdefault(spell_split(sharding, axes=axes), []).append(number)
        splits = [f"{', '.join(map(str, numbers))} as {split}" for split, numbers in alike.items()]
        yield f"results without a sharding are split as the compiler chose: {_listed(splits)}"
    lines = {row.op_name: row.source_line for row in rows if row.source_line and "source_line" not in row.inferred}
    remade = [
        f"{_named(each, lines)}, {each['array']} of a device, from {spell_split(each['before'], axes=axes)} to "
        f"{spell_split(each['after'], axes=axes)}"
        for each in compiled.rematerialised
    ]
    if remade:
        words = "made whole on every device, to be split anew (*involuntary full rematerialization*)"
        yield f"{words}: {_listed(remade)}; {_WAY}"


def _constant_results(module: Module) -> set[int]:
    """The numbers of the results that are constants."""
    root, entry = module.entry.root, CallContext(module.entry)
    results = root.operands if root.opcode == "tuple" else [root]
    return {number for number, item in enumerate(results) if trace_sources([(entry, item, ())]).constant}


def _named(tensor: Rematerialised, lines: Mapping[str, str]) -> str:
    """Its operation, and the line of a collective of that operation."""
    name = tensor["op_name"].rpartition("/")[2] or tensor["name"]
    line = lines.get(tensor["op_name"])
    return f"{name} ({line})" if line else name


def _listed(words: list[str]) -> str:
    more = len(words) - MOST
    return "; ".join(words[:MOST]) + f"; and {more} more" * (more > 0)
