"""The room's error."""

from compare.program.errors import one_line


class TimingError(ValueError):
    """A profile or a schedule that cannot be read.  The message says what was read, and what would be right.

    It is one line, whatever of the profile it repeats.
    """

    def __init__(self, message: str):
        super().__init__(one_line(message))
