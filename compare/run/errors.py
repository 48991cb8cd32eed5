"""The one error of this room."""

from meshes.errors import OneLineError


class WorkError(OneLineError):
    """Work that can't be done here."""
