"""The room's errors."""

from meshes.process.errors import OneLineError


class MetricError(OneLineError):
    """A name, a trace or a card that cannot be read."""


class NotApplicable(OneLineError):  # noqa: N818
    """Why a metric says nothing of a trace: no error of the request."""
