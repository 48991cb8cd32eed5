"""What lines of HLO leave out, and those of other operations of the same program tell.

The end of a communication says whose end it is, and nothing of its groups.  Between slices it is four operations: the
send and the receive say where they meet.  On the line of asynchronous operations a communication may be called without
the `-start` that it has on the device's own line.
"""

from collections.abc import Sequence
from dataclasses import replace

from compare.timing.join.async_pairing import BETWEEN, DONE, START, WHOLE
from compare.timing.join.operations import Operation


def exchanged(told: Sequence[Operation], modules: Sequence[str]) -> list[Operation]:
    """Each end, and each receive, as a part of what began it.  modules: the program of each operation."""
    places = list(zip(modules, told, strict=True))
    begun = {(module, one.collective): one for module, one in places if one.kind and one.half == START}
    sends = {(module, one.meets): one for module, one in places if one.meets and one.half == START}
    begun |= {
        (module, one.collective): sends[module, one.meets] for module, one in places if (module, one.meets) in sends
    }
    return [
        replace(begun.get((module, one.collective), one), half=one.half) if one.half in (DONE, BETWEEN) else one
        for module, one in places
    ]


def spelled_alike(told: Sequence[Operation], names: Sequence[str]) -> list[str]:
    """For each whole operation the collective of the start that differs from it by the word alone, else its own."""
    starts = {name for name, one in zip(names, told, strict=True) if one.half == START}
    found = []
    for name, one in zip(names, told, strict=True):
        start = name.replace(one.kind, f"{one.kind}-start", 1) if one.kind and one.half == WHOLE else name
        found.append(start if start in starts else name)
    return found
