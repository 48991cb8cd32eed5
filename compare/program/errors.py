"""The error of whoever reads HLO text."""


class HloError(ValueError):
    """HLO text that this reader does not understand: it says which line, and never guesses."""
