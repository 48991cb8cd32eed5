"""What the partitioner decided by itself, in words: shardings of open results, and tensors that it made whole."""

from collections.abc import Iterator, Mapping, Sequence

from compare.compile.rematerialised import Rematerialised
from compare.hlo.collective import Collective
from compare.hlo.collectives.replicated import replicated_notes
from compare.hlo.devices.tiles import spell_split
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import Module, read
from compare.user_program.compile_program import CompiledProgram
from compare.user_program.repeated_work import repeated_work

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
    if not replicated_notes(module) and (words := repeated_work(read(compiled.before), module, axes=axes, names=names)):
        yield words
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


def _named(tensor: Rematerialised, lines: Mapping[str, str]) -> str:
    """Its operation, and the line of a collective of that operation."""
    name = tensor["op_name"].rpartition("/")[2] or tensor["name"]
    line = lines.get(tensor["op_name"])
    return f"{name} ({line})" if line else name


def _listed(words: list[str]) -> str:
    more = len(words) - MOST
    return "; ".join(words[:MOST]) + f"; and {more} more" * (more > 0)
