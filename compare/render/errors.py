"""What a view refuses to draw."""

from meshes.process.errors import OneLineError


class ViewError(OneLineError):
    """A report that cannot be drawn."""
