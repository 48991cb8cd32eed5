"""What a view refuses to draw."""


class ViewError(ValueError):
    """A report that cannot be drawn: what was read, and what would be right, in one line."""
