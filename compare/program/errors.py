"""The error of whoever reads HLO text."""

MOST_DEVICES = 1 << 17
"""A number of devices beyond this is a misprint, and would only fill the memory."""


MOST_SAID = 500
"""Characters of an error."""


class HloError(ValueError):
    """HLO text that this reader does not understand: it says which line, and never guesses.

    Its message is one line, whatever of the text it repeats.
    """

    def __init__(self, message: str):
        super().__init__(one_line(message))


def one_line(message: str) -> str:
    """A message on one line that is no longer than a reader reads, its control characters spelled out."""
    words = " ".join(message[: 4 * MOST_SAID].split())
    clean = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in words)
    return clean if len(clean) <= MOST_SAID else clean[: MOST_SAID - 3] + "..."
