"""The error of whoever reads HLO text."""

from meshes.process.errors import OneLineError

MOST_DEVICES = 1 << 17
"""A number of devices beyond this is a misprint, and would only fill the memory."""


class HloError(OneLineError):
    """HLO text that this reader does not understand: it says which line, and never guesses."""
