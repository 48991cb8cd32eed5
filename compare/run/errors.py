"""The error of this room."""

from meshes.process.errors import OneLineError


class WorkError(OneLineError):
    """Work that cannot be done here."""
