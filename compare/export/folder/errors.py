"""The room's error."""

from meshes.process.errors import OneLineError


class ExportError(OneLineError):
    """What cannot be written, or where."""
