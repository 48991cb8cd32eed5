"""Lines of HLO shortened for a reader, and the parts in which two of them differ."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from compare.hlo.text.attributes import split_top

_LAYOUT = re.compile(r"(?<=\])\{[^{}]*\}")
_DROPPED = re.compile(
    r", (?:backend_config|frontend_attributes|sharding|metadata|to_apply|use_global_device_ids|constrain_layout"
    r"|operand_precision|statistics|control-predecessors)="
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_SHARDING = re.compile(r", sharding=(\{(?:[^{}]|\{[^{}]*\})*\})")
_TOKEN = re.compile(r"\s+|[\w.\-]+|.")
_GROUPS = ("replica_groups", "source_target_pairs", "device_ids", "channel_id")
_NAMES = 3
_SEPARATE = 3
"""Fewer equal tokens than this between two changes are marked with them."""

MOST_CHARACTERS = 400
"""Characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Part:
    """Part of a line; `changed`: whether the other line differs there."""

    text: str
    changed: bool


def shorten(line: str) -> str:
    """Name, shape, operands, groups, sharding and the end of its `op_name`; no layouts, no configuration."""
    line = line.strip().removeprefix("ROOT ")
    head = _DROPPED.split(line, maxsplit=1)[0]
    # They may follow attributes that are dropped.
    groups = [f", {part}" for part in split_top(line) if part.partition("=")[0] in _GROUPS and part not in head]
    sharding, op_name = _SHARDING.search(line), _OP_NAME.search(line)
    words = _LAYOUT.sub("", head) + "".join(groups)
    words += f", sharding={sharding[1]}" if sharding else ""
    words += f"  # {_end(op_name[1])}" if op_name and op_name[1] else ""
    return words if len(words) <= MOST_CHARACTERS else words[:MOST_CHARACTERS] + " …"


def _end(op_name: str) -> str:
    """The last parts of a path, which name the part of the model and the operation."""
    names = op_name.split("/")
    return "/".join(names if len(names) <= _NAMES else ["…", *names[-_NAMES:]])


def split_changes(before: str, after: str) -> tuple[list[Part], list[Part]]:
    """Two lines, split where they differ."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    left, right = list[Part](), list[Part]()
    for tag, low, high, begin, end in codes:
        small = tag == "equal" and high - low < _SEPARATE and low > 0 and high < len(old)
        changed = tag != "equal" or small
        left.append(Part("".join(old[low:high]), changed))
        right.append(Part("".join(new[begin:end]), changed))
    return _joined(left), _joined(right)


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Adjacent parts that are both changed, or both unchanged, joined; empty ones dropped."""
    joined: list[Part] = []
    for part in parts:
        if joined and joined[-1].changed == part.changed:
            joined[-1] = Part(joined[-1].text + part.text, part.changed)
        elif part.text:
            joined.append(part)
    return joined
