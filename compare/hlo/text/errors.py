"""The error of readers of HLO text."""

from meshes.process.errors import OneLineError

MOST_DEVICES = 1 << 17
"""Largest number of devices that is read; a larger one is taken for a damaged text."""


class HloError(OneLineError):
    """HLO text that this reader does not understand: it names the line, and nothing is guessed."""


COMPILED = "give the compiled HLO text, or let Python compile it: compare.collectives(FILE, topology=…)"
"""What to do with a program that is not compiled."""
