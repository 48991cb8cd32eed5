"""The room's error."""


class TimingError(ValueError):
    """A profile or a schedule that cannot be read.  The message says what was read, and what would be right."""
