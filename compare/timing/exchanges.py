"""Sends and receives of which only lines of HLO tell: which of them are one communication between slices.

A send, its receive and the end of each are four operations.  The send and the receive say where they meet; the ends say
whose they are.
"""

from collections.abc import Sequence
from dataclasses import replace

from compare.timing.halves import START
from compare.timing.operations import Operation


def exchanged(told: Sequence[Operation], modules: Sequence[str]) -> list[Operation]:
    """Each receive, and each end, as a part of the send that it meets.  modules: the program of each operation."""
    places = [(module, one.meets) for module, one in zip(modules, told, strict=True)]
    sends = {place: one for place, one in zip(places, told, strict=True) if one.meets and one.half == START}
    begun = {
        (place[0], one.collective): sends[place] for place, one in zip(places, told, strict=True) if place in sends
    }
    return [
        _part_of(begun.get((module, one.collective)), one) if one.kind else one
        for module, one in zip(modules, told, strict=True)
    ]


def _part_of(send: Operation | None, one: Operation) -> Operation:
    return one if send is None else replace(send, half=one.half)
