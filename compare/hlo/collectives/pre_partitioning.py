"""HLO from before the partitioner: it has shardings, and no collective yet, which is easily read as "moves nothing"."""

import re

from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import Module

_SHARDING = re.compile(r", sharding=\{")
_TILES = re.compile(r"devices=\[([\d,]+)\]|mesh\[")
_WHOLE = re.compile(r"1(?:,1)*(?:,\d+)?$")
"""Tile sizes of a sharding whose only non-trivial dim replicates: nothing is split."""
_BEFORE = re.compile(r'custom_call_target=\s*"(?:Sharding|SPMDFullToShardShape|xla\.sdy\.\w+)"|xla\.sdy\.meshes=')
"""What partitioning removes from a module."""


def check_partitioned(module: Module) -> None:
    """Raise `HloError` where a module without collectives still has a tensor that is to be split."""
    if is_scheduled(module):
        return
    for match in _SHARDING.finditer(module.text):
        if _splits(module.text[match.end() : module.text.find("\n", match.end())]):
            line = module.number(module.line_at(match.start()))
            raise HloError(
                f"this is the program before the partitioner (line {line} has a sharding, and there are no collectives "
                "yet); give the compiled text: lowered.compile().as_text(), or the dump after optimizations"
            )


def is_scheduled(module: Module) -> bool:
    """True if the module is scheduled: the output of the whole compiler."""
    return module.header.get("is_scheduled") == "true"


def is_partitioned(module: Module) -> bool:
    """True if the module is partitioned, as far as its text shows."""
    if is_scheduled(module):
        return True
    if _BEFORE.search(module.text):
        return False
    if collective_instructions(module):
        return True
    try:
        check_partitioned(module)
    except HloError:
        return False
    return True


def _splits(text: str) -> bool:
    """True if a sharding splits a dim; `text` is from its brace to the end of the line."""
    depth, end = 1, 0
    while depth and end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    sharding = text[:end]
    repeats = "last_tile" in sharding
    return any(not (tiles[1] and repeats and _WHOLE.match(tiles[1])) for tiles in _TILES.finditer(sharding))
