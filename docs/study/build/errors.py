"""The error of this room."""

from meshes.process.errors import OneLineError


class StudyError(OneLineError):
    """A study that cannot be read or made: one line."""
