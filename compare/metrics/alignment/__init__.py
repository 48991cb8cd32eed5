"""Compare two timelines of one plan."""
