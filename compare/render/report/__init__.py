"""The report of one run in the terminal and as a page."""
