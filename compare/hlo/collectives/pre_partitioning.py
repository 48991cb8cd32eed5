"""HLO from before the partitioner: it has shardings, and no collective yet, which is easily read as "moves nothing"."""

import re

from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import Module

_SHARDING = re.compile(r", sharding=\{")
_TILES = re.compile(r"devices=\[([\d,]+)\]|mesh\[")
_WHOLE = re.compile(r"1(?:,1)*(?:,\d+)?$")
"""Tiles of a sharding whose last dim repeats: nothing is split."""
_BEFORE = re.compile(r'custom_call_target="(?:Sharding|SPMDFullToShardShape|xla\.sdy\.\w+)"|xla\.sdy\.meshes=')
"""What the partitioners take away."""


def check_partitioned(module: Module) -> None:
    """Raise `HloError` where a module without collectives still has a tensor that is to be split."""
    if is_scheduled(module):
        return
    for found in _SHARDING.finditer(module.text):
        if _splits(module.text[found.end() : module.text.find("\n", found.end())]):
            line = module.number(module.line_at(found.start()))
            raise HloError(
                f"this is the program before the partitioner (line {line} has a sharding, and there are no collectives "
                "yet); give the compiled text: lowered.compile().as_text(), or the dump after optimizations"
            )


def is_scheduled(module: Module) -> bool:
    """Whether it has been through the whole compiler."""
    return module.header.get("is_scheduled") == "true"


def is_partitioned(module: Module) -> bool:
    """Whether the partitioner has seen it, as far as the text tells."""
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
    """Whether a sharding, from its brace to the end of the line, splits a dim."""
    depth, end = 1, 0
    while depth and end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    sharding = text[:end]
    repeats = "last_tile" in sharding
    return any(not (tiles[1] and repeats and _WHOLE.match(tiles[1])) for tiles in _TILES.finditer(sharding))
