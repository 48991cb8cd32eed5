"""The one error of this room."""


class WorkError(ValueError):
    """Work that can't be done here: what was found, and what would be right, in one line."""
