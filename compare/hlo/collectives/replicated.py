"""A program that communicates nothing because every device does the same work."""

import re

from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.text.module import Module

_TELLS_APART = re.compile(
    r"\s(?:partition-id|replica-id|infeed|rng|rng-get-and-update-state)\("
    r'|custom_call_target="(?!AllocateBuffer"|AssumeGatherIndicesInBound"|ConcatBitcast")'
)
"""What may have another value on another device.  A kernel can ask which device it is on, so any custom call may,
but for three that libtpu itself writes (a lookup has the second): they are made of their operands alone."""


def replicated_notes(module: Module) -> tuple[str, ...]:
    """One note where all devices of a program compute the same from the same arguments; else none.

    It is proved, not guessed: all arguments are replicated, no collective brings anything, and no instruction could
    have another value on another device.
    """
    if module.num_partitions < 2 or collective_instructions(module) or _TELLS_APART.search(module.text):
        return ()
    parameters = module.entry.parameters.values()
    if not parameters or any(item.attributes.get("sharding") != "{replicated}" for item in parameters):
        return ()
    return (
        f"nothing is split: each of the {module.num_partitions} devices has every argument whole, and does all "
        "of the work",
    )
