"""The error of this room."""

from meshes.process.errors import OneLineError


class QueryError(OneLineError):
    """A question that cannot be answered, or a run folder that cannot be read: one line."""
