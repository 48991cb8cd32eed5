"""HLO from before the partitioner: it has shardings, and at most the collectives that its author wrote.

Read as if it were compiled it seems to move nothing, or only those.
"""

import re

from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.devices.groups import DeviceNumbering, groups_of, largest_id
from compare.hlo.emission.emission_form import kind_of
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import Module

_SHARDING = re.compile(r", sharding=\{")
_TILES = re.compile(r"devices=\[([\d,]+)\]|mesh\[")
_WHOLE = re.compile(r"1(?:,1)*(?:,\d+)?$")
"""Tile sizes of a sharding whose only non-trivial dim replicates: nothing is split."""
_BEFORE = re.compile(r'custom_call_target=\s*"(?:Sharding|SPMDFullToShardShape|xla\.sdy\.\w+)"|xla\.sdy\.meshes=')
"""What partitioning removes from a module."""


def check_partitioned(module: Module) -> None:
    """Raise `HloError` where a module still has a tensor that is to be split."""
    line = None if is_scheduled(module) else _find_sign(module)
    if line is not None:
        raise HloError(
            f"this is the program before the partitioner (line {line} says how something is to be split); give the "
            "compiled text: lowered.compile().as_text(), or the dump after optimizations; or let Python compile it: "
            "compare.collectives(FILE, axes=…, topology=…)"
        )


def _find_sign(module: Module) -> int | None:
    """The number of the first line that only a module from before the partitioner has.

    Without collectives that is a sharding that splits something.  With some, which an author may have written
    (`shard_map`, `xm.all_gather`): what partitioning removes, or a split parameter in a module without a number of
    partitions.  A partitioned module's own parameters keep their shardings.
    """
    has_collectives = bool(collective_instructions(module))
    # A `shard_map` beside automatic sharding has its own permute before the partitioner has made any other:
    #   local.1 = f32[64,256]{1,0} custom-call(whole.1), custom_call_target="SPMDFullToShardShape", sharding={manual}
    if has_collectives and (match := _BEFORE.search(module.text)):
        return module.number(module.line_at(match.start()))
    # A partitioned module still says how its parameters were split, as in the decode step of docs/example-run:
    #   parameter(12), sharding={devices=[1,2,1,1,4]<=[8]}, metadata={op_name="cache.k"}
    if has_collectives and "num_partitions" in module.header:
        return None
    for match in _SHARDING.finditer(module.text):
        if _splits(module.text[match.end() : module.text.find("\n", match.end())]):
            return module.number(module.line_at(match.start()))
    return None


def check_own_groups(module: Module) -> None:
    """Raise `HloError` where a collective that the author wrote names replicas that there are not.

    Such a program is compiled for the partitions of one replica: without a channel its groups are of replicas.  libtpu
    ends its process at it.
    """
    for item in collective_instructions(module):
        # `HloModule IrToHlo.3` of PyTorch/XLA says neither replicas nor partitions, and its `xm.all_gather` has no
        # channel:
        #   all-gather(%p0.1), replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={0}
        if item.opcode not in ("send", "recv") and "num_partitions" not in module.header:
            num_ids = largest_id(item) + 1
            groups_of(item, kind_of(item), DeviceNumbering(replicas=module.replica_count, partitions=num_ids))


def is_scheduled(module: Module) -> bool:
    """True if the module is scheduled: the output of the whole compiler."""
    return module.header.get("is_scheduled") == "true"


def is_partitioned(module: Module) -> bool:
    """True if the module is partitioned, as far as its text shows."""
    if is_scheduled(module):
        return True
    if _BEFORE.search(module.text):
        return False
    return _find_sign(module) is None


def _splits(text: str) -> bool:
    """True if a sharding splits a dim; `text` is from its brace to the end of the line."""
    depth, end = 1, 0
    while depth and end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    sharding = text[:end]
    repeats = "last_tile" in sharding
    return any(not (tiles[1] and repeats and _WHOLE.match(tiles[1])) for tiles in _TILES.finditer(sharding))
