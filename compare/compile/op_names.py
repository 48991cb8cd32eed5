"""Names that the compiler drops: of several slices, one pass writes every collective anew, without its `op_name`.

The pass is `cross-slice-rewrites` of libtpu's pipeline `Megascale`.  libtpu is asked for the text before it, in which
each collective stands with its `op_name`, its own name and its channel.  Afterwards a send between slices bears that
name in its rendezvous, and a collective within slices the channel, so that names are put back where they were.  Where
channels don't tell collectives apart, as in a `shard_map`, a twin of the program with other channels does.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.emission import megascale
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.metadata import SourceMetadata
from compare.hlo.text.module import read

PASS = "cross-slice-rewrites"
_NUMBER = re.compile(r"_\d+$")
_CHANNEL = re.compile(r"(?<=\bchannel_id=)\d+")


@dataclass(frozen=True, slots=True)
class RestoredNames:
    """A program's text with names put back, and how many of those that were lost."""

    text: str
    lost: int
    restored: int


def read_text_with_names(folder: Path) -> str:
    """The text before the pass; empty where it was not dumped."""
    dumps = sorted(folder.glob(f"*.Megascale.*before_{PASS}.txt"))
    return dumps[0].read_text() if dumps else ""


def restore_names(text: str, before: str, *, twin: tuple[str, str] | None = None) -> RestoredNames:
    """Put the names of `before` back on collectives that have none; not where several could be meant.

    twin: both texts of the same program with a channel for each collective.  Its names are taken where it was compiled
    into the same but for its channels.
    """
    source = twin if twin and _without_channels(twin[0]) == _without_channels(text) else (text, before)
    lost = _lost(*source)
    lines = text.split("\n")
    for number, metadata in lost.items():
        head, config, rest = lines[number].partition(", backend_config=")
        lines[number] = head + metadata + config + rest
    return RestoredNames("\n".join(lines), len(lost), sum(map(bool, lost.values())))


def _lost(text: str, before: str) -> dict[int, str]:
    """The lines of collectives without a name, counted from 0, and their metadata; empty where it is not known."""
    if not before:
        return {}
    try:
        module = read(text)
        wires = collective_instructions(module)
        known = _Known.read(before, sent={_transfer_name(item) for item in wires if megascale.is_megascale(item)})
    except HloError:  # reported by the reader of the program's rows
        return {}
    return {item.line - 1: known.metadata(item) for item in wires if not item.op_name and _is_transfer(item)}


def _without_channels(text: str) -> str:
    return _CHANNEL.sub("", text)


@dataclass(frozen=True, slots=True)
class _Known:
    """The metadata of collectives by name, and by channel and kind where that tells them apart."""

    by_name: Mapping[str, str]
    by_channel: Mapping[tuple[str, str], frozenset[str]]

    @classmethod
    def read(cls, text: str, *, sent: Collection[str]) -> "_Known":
        """sent: names of those that became transfers between slices.  Their channels are given to others."""
        module = read(text)
        sources = SourceMetadata(module)
        by_name: dict[str, str] = {}
        by_channel: dict[tuple[str, str], set[str]] = {}
        for item in collective_instructions(module):
            by_name[item.name] = metadata = _metadata(item, sources)
            # Of a permute, what stays within slices stands beside what is sent, and keeps the channel.
            if item.name not in sent or item.opcode.startswith("collective-permute"):
                by_channel.setdefault(_channel(item), set()).add(metadata)
        return cls(by_name, {key: frozenset(names) for key, names in by_channel.items()})

    def metadata(self, item: Instruction) -> str:
        if item.opcode in ("send", "recv"):
            return self.by_name.get(_transfer_name(item), "")
        fits = self.by_channel.get(_channel(item), frozenset())
        return next(iter(fits)) if len(fits) == 1 else ""


def _transfer_name(item: Instruction) -> str:
    """The name that a transfer's collective had."""
    return _NUMBER.sub("", megascale.rendezvous(item))


def _channel(item: Instruction) -> tuple[str, str]:
    return item.attributes.get("channel_id", ""), item.opcode.removesuffix("-start")


def _metadata(item: Instruction, sources: SourceMetadata) -> str:
    """The frames of its stack are numbered anew later, so that their line is spelled out."""
    if not item.op_name:
        return ""
    file, _, line = (sources.source_line(item) or "").rpartition(":")
    place = f' source_file="{file}" source_line={line}' if file else ""
    return f', metadata={{op_name="{item.op_name}"{place}}}'


def _is_transfer(item: Instruction) -> bool:
    return item.opcode not in ("send", "recv") or megascale.is_megascale(item)
