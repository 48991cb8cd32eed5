"""The room's error."""

from meshes.process.errors import OneLineError


class TimingError(OneLineError):
    """A profile or a schedule that cannot be read."""
