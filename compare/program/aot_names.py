"""Names that the compiler drops: of several slices, one pass writes every collective anew, without its `op_name`.

The pass is `cross-slice-rewrites` of libtpu's pipeline `Megascale`.  libtpu is asked for the text before it, in which
each collective stands with its `op_name`, its own name and its channel.  Afterwards a send between slices bears that
name in its rendezvous, and a collective within slices the channel, so that names are put back where they were.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compare.program import megascale
from compare.program.errors import HloError
from compare.program.instruction import Instruction
from compare.program.metadata import Sources
from compare.program.text import read
from compare.program.walk import lines_of

PASS = "cross-slice-rewrites"
_NUMBER = re.compile(r"_\d+$")


@dataclass(frozen=True, slots=True)
class Restored:
    """A program's text with names put back, and how many of those that were lost."""

    text: str
    lost: int
    restored: int


def before(folder: Path) -> str:
    """That text; empty where there is none."""
    found = sorted(folder.glob(f"*.Megascale.*before_{PASS}.txt"))
    return found[0].read_text() if found else ""


def restored(text: str, before: str) -> Restored:
    """Put the names of `before` back on collectives that have none; not where several could be meant."""
    if not before:
        return Restored(text, 0, 0)
    try:
        known, module = _Known.read(before), read(text)
        wires = [module.at(at) for at in lines_of(module)]
    except HloError:  # said by those who read the program for its rows
        return Restored(text, 0, 0)
    lines = text.split("\n")
    nameless = [item for item in wires if not item.op_name and _on_a_wire(item)]
    named = {item: metadata for item in nameless if (metadata := known.metadata(item))}
    for item, metadata in named.items():
        head, config, rest = lines[item.line - 1].partition(", backend_config=")
        lines[item.line - 1] = head + metadata + config + rest
    return Restored("\n".join(lines), len(nameless), len(named))


@dataclass(frozen=True, slots=True)
class _Known:
    """The metadata of collectives by name, and by channel and kind where that tells them apart."""

    by_name: Mapping[str, str]
    by_channel: Mapping[tuple[str, str], frozenset[str]]

    @classmethod
    def read(cls, text: str) -> "_Known":
        module = read(text)
        sources = Sources(module)
        by_name: dict[str, str] = {}
        by_channel: dict[tuple[str, str], set[str]] = {}
        for item in map(module.at, lines_of(module)):
            by_name[item.name] = metadata = _metadata(item, sources)
            by_channel.setdefault(_channel(item), set()).add(metadata)
        return cls(by_name, {key: frozenset(found) for key, found in by_channel.items()})

    def metadata(self, item: Instruction) -> str:
        if item.opcode in ("send", "recv"):
            return self.by_name.get(_NUMBER.sub("", megascale.rendezvous(item)), "")
        fits = self.by_channel.get(_channel(item), frozenset())
        return next(iter(fits)) if len(fits) == 1 else ""


def _channel(item: Instruction) -> tuple[str, str]:
    return item.attributes.get("channel_id", ""), item.opcode.removesuffix("-start")


def _metadata(item: Instruction, sources: Sources) -> str:
    """The frames of its stack are numbered anew later, so that their line is spelled out."""
    if not item.op_name:
        return ""
    file, _, line = (sources.source_line(item) or "").rpartition(":")
    place = f' source_file="{file}" source_line={line}' if file else ""
    return f', metadata={{op_name="{item.op_name}"{place}}}'


def _on_a_wire(item: Instruction) -> bool:
    return item.opcode not in ("send", "recv") or megascale.is_megascale(item)
