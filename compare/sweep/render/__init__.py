"""A sweep drawn: terminal, table, figure, page."""
