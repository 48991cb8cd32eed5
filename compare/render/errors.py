"""The error of this room."""

from meshes.process.errors import OneLineError


class ViewError(OneLineError):
    """A report that cannot be drawn."""
