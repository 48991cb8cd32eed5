"""Two timelines of one plan, side by side."""
