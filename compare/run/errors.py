"""The one error of this room."""

from meshes.process.errors import OneLineError


class WorkError(OneLineError):
    """Work that can't be done here."""
